"""The machine: Hypothesis plays users, nodes, brokers and networks against the whole operator, step by step.

A rule does one thing, or lets time pass. The guarantees watch all the time; after each rule the first broken one fails
the example, which Hypothesis shrinks and prints as the calls that play it again.
"""

from collections.abc import Callable, Sequence

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.prove.plans import CRASHES, ERRORS, EVENTS, FREEZES, KAFKA, STALE
from tests.prove.second_judge.coverage import Coverage
from tests.prove.second_judge.deeds import INVALID, LEARNERS, POLICIES, SCALE_DOWN, Deeds
from tests.prove.second_judge.explanation import Explanation
from tests.prove.second_judge.facts import Facts
from tests.prove.second_judge.identity import Identity
from tests.prove.second_judge.ledger import Figures, Listener
from tests.prove.second_judge.never import Claims, Members, Writer
from tests.prove.second_judge.raises import Raises
from tests.prove.second_judge.stage import GROUNDS, Plant, Stage, stage_of
from tests.prove.story import Disturbance

GUARANTEES: tuple[Callable[[], Listener], ...] = (
    Coverage,
    Facts,
    Raises,
    Claims,
    Identity,
    Writer,
    Members,
    Explanation,
)
AT_THE_END = 75.0
"""Seconds without faults at the end of each example."""
HISTORY = 40
"""Lines of what happened last that are printed with a failure."""
CALL_FAULTS = {
    "write": (*CRASHES, *ERRORS, *FREEZES),
    "read": (*CRASHES[:1], ("timeout-before", 0), ("500", 0), *STALE, ("freeze", 12), ("freeze-raise", 12)),
    "kafka": (*CRASHES, *KAFKA, ("freeze", 12)),
    "agent": (*CRASHES, ("silent", 0), ("silent", 1), ("old", 1), ("old", 2), ("freeze", 12)),
    "event": EVENTS,
}
AMBUSHES = ("scale", "kill", "pause", "hold", "lose", "delete-pod", "die", "template", "brokers-away", "copies-behind")

ORDINALS = st.integers(0, 4)
ONE_CALL = st.sampled_from([(site, *fault) for site, faults in CALL_FAULTS.items() for fault in faults])


class Machine(RuleBasedStateMachine):
    """One example."""

    figures = Figures()
    plants: Sequence[Plant] = ()
    grounds: Sequence[str] = tuple(GROUNDS)

    def __init__(self) -> None:
        super().__init__()
        self.stage: Stage | None = None

    @initialize(data=st.data(), seed=st.integers(0, 7))
    def bring_up(self, data: st.DataObject, seed: int) -> None:
        """Begin with an application at rest."""
        ground = data.draw(st.sampled_from(self.grounds), label="ground")
        self.stage = stage_of(ground, seed, [make() for make in GUARANTEES], self.figures)
        self.stage.plants.extend(self.plants)
        Deeds(self.stage)
        self.figures.examples += 1
        self._wait(10)

    # Time.

    @rule(seconds=st.integers(1, 15))
    def let_seconds_pass(self, seconds: int) -> None:
        self._wait(seconds)

    @rule(seconds=st.sampled_from((25, 40, 75)))
    def let_a_minute_pass(self, seconds: int) -> None:
        self._wait(seconds)

    # Users.

    @rule(replicas=st.integers(1, 4), seconds=st.sampled_from((0, 3, 20, 40)))
    def scale(self, replicas: int, seconds: int) -> None:
        self._do("scale", replicas, seconds)

    @rule(less=st.integers(1, 2), seconds=st.sampled_from((5, 14, 18, 40)))
    def scale_down(self, less: int, seconds: int) -> None:
        self._do("scale", max(1, self._there.current() - less), seconds)

    @rule(less=st.integers(1, 2), seconds=st.sampled_from((15, 30, 60)))
    def lift_the_brakes_and_scale_down(self, less: int, seconds: int) -> None:
        self._lift_the_brakes()
        self.scale_down(less, seconds)

    @rule(more=st.integers(1, 2))
    def lift_the_brakes_and_scale_up(self, more: int) -> None:
        self._lift_the_brakes()
        self.scale_up(more)

    @rule(more=st.integers(1, 2))
    def scale_up(self, more: int) -> None:
        self._do("scale", min(5, self._there.current() + more), 3)

    @rule(is_allowed=st.booleans())
    def scale_to_zero(self, *, is_allowed: bool) -> None:
        before = self._there.desired()
        self._do("allow-zero", is_allowed)
        self._do("scale", 0, 40 if is_allowed else 15)
        self._do("scale", max(1, before))

    @rule(on=st.booleans())
    def pause(self, *, on: bool) -> None:
        self._do("pause", on)

    @rule(on=st.booleans())
    def hold(self, *, on: bool) -> None:
        self._do("hold", on)

    @rule(on=st.booleans())
    def dry_run(self, *, on: bool) -> None:
        self._do("dry-run", on)

    @rule(of_another=st.booleans(), seconds=st.sampled_from((1, 20)))
    def override(self, *, of_another: bool, seconds: int) -> None:
        self._do("override", of_another, seconds)

    @rule(image=st.integers(2, 4), seconds=st.sampled_from((1, 40)))
    def change_template(self, image: int, seconds: int) -> None:
        self._do("template", image, seconds)

    @rule(which=st.integers(0, len(SCALE_DOWN) - 1))
    def change_scale_down(self, which: int) -> None:
        self._do("scale-down", which)

    @rule(which=st.integers(0, len(LEARNERS) - 1))
    def change_learners(self, which: int) -> None:
        self._do("learners", which)

    @rule(which=st.integers(0, len(POLICIES) - 1))
    def change_rollout(self, which: int) -> None:
        self._do("rollout", which)

    @rule(which=st.sampled_from(("retention", "max-idle", "labels", "broken-template")), value=st.integers(0, 3))
    def change_another_field(self, which: str, value: int) -> None:
        self._do(which, value, 2)

    @rule(which=st.integers(0, len(INVALID) - 1), seconds=st.sampled_from((1, 25)))
    def write_an_invalid_spec_for_a_while(self, which: int, seconds: int) -> None:
        self._do("invalid", which, seconds)
        self._do("valid", 0)

    @rule(which=st.sampled_from(("forget-record", "garble-record", "budget", "forget-process-id")), value=ORDINALS)
    def edit_an_object_of_the_operator(self, which: str, value: int) -> None:
        self._do(which, value)

    @rule(replicas=st.integers(1, 4))
    def scale_the_statefulset_itself(self, replicas: int) -> None:
        self._do("scale-statefulset", replicas, 3)

    @rule()
    def delete_the_statefulset(self) -> None:
        self._do("delete-statefulset", 0, 10)

    @precondition(lambda self: self.stage is not None and self.stage.now - self.stage.began > 150)
    @rule(seconds=st.sampled_from((5, 40)))
    def delete_the_app(self, seconds: int) -> None:
        self._do("delete-app", 0, seconds)

    # Nodes, brokers, processes.

    @rule(what=st.sampled_from(("kill", "lose", "delete-pod", "wipe")), ordinal=ORDINALS, seconds=st.integers(0, 12))
    def hit_a_pod(self, what: str, ordinal: int, seconds: int) -> None:
        self._do(what, ordinal, seconds)

    @rule(ordinal=ORDINALS, seconds=st.sampled_from((5, 30, 75)))
    def swap_a_process_file_for_a_while(self, ordinal: int, seconds: int) -> None:
        self._do("other-process-id", ordinal, seconds)
        self._do("own-process-id", ordinal)

    @rule(what=st.sampled_from(("skew", "controllers-take", "stops-take")), value=st.integers(0, 4))
    def change_the_nodes(self, what: str, value: int) -> None:
        self._do(what, value)

    @rule(thousands=st.sampled_from((9, 11, 30)), seconds=st.sampled_from((0, 20)))
    def let_copies_fall_behind(self, thousands: int, seconds: int) -> None:
        self._do("copies-behind", thousands, seconds)

    @rule(away=st.integers(2, 30), seconds=st.sampled_from((0, 20)))
    def take_the_brokers_away(self, away: int, seconds: int) -> None:
        self._do("brokers-away", away, seconds)

    @rule(seconds=st.sampled_from((1, 3, 4)))
    def slow_the_api_server(self, seconds: int) -> None:
        self._do("api-slow", seconds)

    @rule(absence=st.sampled_from((2, 8, 15)), thaws_after=st.sampled_from((0, 8, 25)))
    def lose_the_leader(self, absence: int, thaws_after: int) -> None:
        self._there.lives.absence = float(absence)
        self._do("freeze" if thaws_after else "die", thaws_after)

    @rule(fault=ONE_CALL, after=st.integers(1, 6), seconds=st.sampled_from((0, 0, 4)))
    def spoil_a_call(self, fault: tuple[str, str, int], after: int, seconds: int) -> None:
        site, what, which = fault
        self._plan(site, after, what, which)
        self._wait(seconds)

    @rule(
        site=st.sampled_from(("write", "kafka", "read")),
        after=st.integers(1, 4),
        what=st.sampled_from(AMBUSHES),
        which=st.integers(0, 4),
    )
    def ambush_a_call(self, site: str, after: int, what: str, which: int) -> None:
        self._plan(site, after, what, which)

    def teardown(self) -> None:
        """Let the faults end, and judge what stands then."""
        if self.stage is None:
            return
        try:
            self.stage.board.plan.clear()
            if not self.stage.ledger.wrongs:
                self._wait(AT_THE_END)
        finally:
            self.figures.seconds += self.stage.now - self.stage.began
            self.stage.close()

    def _lift_the_brakes(self) -> None:
        for what in ("valid", "pause", "hold", "dry-run"):
            self._do(what, 0)

    @property
    def _there(self) -> Stage:
        assert self.stage is not None
        return self.stage

    def _do(self, what: str, which: int, seconds: float = 0) -> None:
        self.figures.rules[what] += 1
        self._there.strikes(what, int(which))
        self._wait(seconds)

    def _plan(self, site: str, after: int, what: str, which: int) -> None:
        board = self._there.board
        self.figures.rules[f"{what} at a {site}"] += 1
        number = board.counts[site] + after
        board.plan.setdefault((site, number), []).append(Disturbance(site, number, what, which))

    def _wait(self, seconds: float) -> None:
        self._there.wait(seconds)
        self.check()

    def check(self) -> None:
        """Fail if a guarantee is broken."""
        wrongs = self._there.ledger.wrongs
        if wrongs:
            note("\n".join(self._there.board.chronicle[-HISTORY:]))
        assert not wrongs, "\n".join(wrongs)


def machine_of(figures: Figures, plants: Sequence[Plant] = (), grounds: Sequence[str] = ()) -> type[Machine]:
    """A machine that counts there, with those planted faults, on those grounds or on all."""

    class Bound(Machine):
        pass

    Bound.figures, Bound.plants, Bound.grounds = figures, plants, grounds or tuple(GROUNDS)
    return Bound
