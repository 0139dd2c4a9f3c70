"""A mutant for every gate of every chain, made from `core/gates/chains.py` itself: the product without that one gate.

Of each it is written down where the sweep notices, or what stands behind the gate: then both are taken away, and the
sweep must notice that. A gate without an entry fails a unit test, so that none is added unproven.

Most gates refuse together with others, and which others changes from look to look. Of such a gate the mutant is a
product that allows a removal whenever this gate refuses: then the scene shows that its moments are dangerous ones, and
that nothing but the gates that refuse at the same moments, and the rule of two readings, stands behind it.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from streamapp.core.actions import disruption, open_step, rollout, scale_down
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import is_on_demand
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.gates import chains, convergence, evaluate
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import Gate, GateInput, input_now
from streamapp.core.gates.evaluate import Approval, CoverageOverride
from tests.prove.gate_branches import BESIDE
from tests.prove.play import play
from tests.prove.story import Story

Named = tuple[str, str]
"""A chain and one of its gates, by their names in `chains`; or `ELSEWHERE` and a rule of `gate_branches`."""
ELSEWHERE = "elsewhere"


def chains_by_name() -> Mapping[str, tuple[Gate, ...]]:
    """Every chain there is."""
    return {name: chain for name, chain in vars(chains).items() if name.endswith("_GATES") and isinstance(chain, tuple)}


def every_gate() -> tuple[Named, ...]:
    """Every gate of every chain."""
    return tuple((name, gate.__name__) for name, chain in chains_by_name().items() for gate in chain)


def without(*dropped: Named) -> Iterator[Any]:
    """Patches that take gates out of chains, wherever the product has a name for the chain."""
    for name, rule in dropped:
        if name == ELSEWHERE:
            yield from BESIDE[rule]()
    for name, chain in chains_by_name().items():
        gone = {gate for chained, gate in dropped if chained == name}
        if not gone:
            continue
        kept = tuple(gate for gate in chain if gate.__name__ not in gone)
        for module in [module for key, module in sys.modules.items() if key.startswith("streamapp.core")]:
            for known, value in list(vars(module).items()):
                if value is chain:
                    yield patch.object(module, known, kept)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of the product without one gate."""

    scene: str = ""
    """Where it shows that the gate is missing; with `behind`, where it shows that all of these are. Or a story."""
    behind: tuple[Named, ...] = ()
    """The gates and rules that stand behind it: the scene ends well without them, and not without the gate as well."""
    moments: bool = False
    """Whether the scene fails if everything is allowed at the moments at which the gate refuses."""
    why: str = ""
    """Of a gate that no story of the sweep shows to be missing: what else is known of it."""

    @property
    def story(self) -> Story:
        """What to play."""
        return Story.parse(self.scene if " " in self.scene else f"{self.scene} seed=1")

    @property
    def status(self) -> str:
        """One word for the table."""
        return "explained" if self.behind or self.moments else "caught" if self.scene else "not shown"


@contextmanager
def at_work(*dropped: Named) -> Iterator[None]:
    """Have the product do without these gates."""
    with ExitStack() as entered:
        for one in list(without(*dropped)):
            entered.enter_context(one)
        yield


def is_caught(entry: Entry, *dropped: Named) -> bool:
    """Whether the scene, which the sound product sets up, fails without these gates."""
    play(entry.story)
    with at_work(*dropped):
        return bool(play(entry.story).wrongs)


@contextmanager
def allowed_when_refused_by(named: Named) -> Iterator[None]:
    """Have the product allow whatever this gate refuses, whoever else refuses it.

    These are removals and restarts; of the gates that stand before something else, the openings of the budget, the word
    that the application has converged, and the end of a step.
    """
    chain, name = named
    gate = next(one for one in chains_by_name()[chain] if one.__name__ == name)
    with ExitStack() as entered:
        for one in _lenient(chain, gate):
            entered.enter_context(one)
        yield


def _lenient(chain: str, gate: Gate) -> Iterator[Any]:
    if chain in ASKED_BY:
        module, gates, sound = ASKED_BY[chain], chains_by_name()[chain], evaluate.first_refusal

        def first_refusal(asked: Iterable[Gate], case: GateInput) -> Refusal | None:
            is_allowed = tuple(asked) == gates and gate(case) is not None
            return None if is_allowed else sound(asked, case)

        yield patch.object(module, "first_refusal", first_refusal)
        return
    judge = _judging(chain, gate)
    if chain == "TWO_PLACES_GATES":
        still = evaluate.still_covered
        yield patch.object(disruption, "evaluate", judge)
        yield patch.object(
            disruption, "still_covered", lambda case, age: None if gate(case) is not None else still(case, age)
        )
    else:
        yield patch.object(scale_down, "evaluate", judge)
        yield patch.object(rollout, "evaluate", judge)


def _judging(chain: str, gate: Gate) -> Callable[..., Approval | Refusal]:
    sound = evaluate.evaluate

    def judge(
        evidence: Evidence, candidate: RemovalCandidate, override: CoverageOverride | None = None
    ) -> Approval | Refusal:
        latest = evidence.snapshot.latest
        if latest is None:
            return sound(evidence, candidate, override)
        case = input_now(evidence, candidate, latest)
        by_word = override if _goes_by_word(case, override) else None
        asked = _asked(evidence, candidate) if by_word is None else ("READINESS_GATES",)
        is_allowed = chain in asked and gate(case) is not None
        return evaluate._permission(case, latest, by_word) if is_allowed else sound(evidence, candidate, override)

    return judge


def _goes_by_word(case: GateInput, override: CoverageOverride | None) -> bool:
    """Whether a user's word alone lets the pods go, as `evaluate` has it."""
    if override is None or not override.is_of_the_user:
        return False
    return case.reading.shows_no_tasks or evaluate._is_restless(case, override)


def _asked(evidence: Evidence, candidate: RemovalCandidate) -> tuple[str, ...]:
    """The chains that are asked about a candidate, unless a user's word lets it go."""
    if candidate.kind in {RemovalKind.NEVER_RAN, RemovalKind.ALL}:
        return ("NEVER_RAN_GATES",)
    if candidate.kind is RemovalKind.ANY_ONE:
        return ("REMOVAL_GATES", "TWO_PLACES_GATES")
    if is_on_demand(evidence):
        return ("DRAINED_REMOVAL_GATES", "LEARNER_GATES")
    return ("REMOVAL_GATES", "COVERAGE_GATES")


def is_dangerous(entry: Entry, named: Named) -> bool:
    """Whether the scene, which the sound product sets up, fails where the gate's refusals are permissions."""
    play(entry.story)
    with allowed_when_refused_by(named):
        return bool(play(entry.story).wrongs)


def table() -> Iterator[str]:
    """Every gate with what is known of it; last how many there are of each kind."""
    counts = Counter(LEDGER[named].status for named in every_gate())
    for named in every_gate():
        entry = LEDGER[named]
        behind = " + ".join(".".join(one) for one in entry.behind) or ("all that refuses then" if entry.moments else "")
        shown = f"after 1 story: {entry.scene}" if entry.scene else entry.why
        yield f"{'.'.join(named)}: {entry.status}{f' with {behind}' if behind else ''} ({shown})"
    yield f"mutants: {sum(counts.values())}, " + ", ".join(f"{kind}: {counts[kind]}" for kind in KINDS)


ASKED_BY = {
    "RESTLESS_GATES": evaluate,
    "CONVERGENCE_GATES": convergence,
    "CONVERGED_GATES": convergence,
    "STEP_END_GATES": open_step,
    "STEP_END_BY_TASKS_GATES": open_step,
}
"""Who asks the chains that no removal is judged by."""
KINDS = ("caught", "explained", "not shown")

ROOM = "no volume of a scene with learners is too small for them, and the judge knows no room on volumes"
REPLACED = "a pod that neither runs nor is in the group is replaced: nothing is taken away, whenever it happens"
RESTLESS = "no group of a scene rebalances without end; core/evidence/test_other_topology takes each of these away"
NOBODY_LOSES = (
    "pods that never ran go: the judge asks for their claims and the record, and live reads come before the write"
)

ASKED_OF_COPIES = (
    "topology_is_known",
    "tasks_move_to_caught_up_copies",
    "positions_are_known",
    "end_offsets_were_read",
    "every_stateful_task_has_two_places",
)
TWO_PLACES = {
    one: Entry(
        "node-drain",
        (
            (ELSEWHERE, "a join must be recent"),
            *(("TWO_PLACES_GATES", other) for other in ASKED_OF_COPIES if other != one),
        ),
    )
    for one in ASKED_OF_COPIES
}
"""Each of these refuses where nothing is known of copies: without all of them the budget opens on no join at all."""

LEDGER: Mapping[Named, Entry] = {
    ("REMOVAL_GATES", "no_earlier_step_is_open"): Entry("down-by-slow-stops seed=1 removal:1:forget-record"),
    ("REMOVAL_GATES", "facts_are_fresh"): Entry("rollout seed=1 kafka:4:freeze:12", moments=True),
    ("REMOVAL_GATES", "brokers_answered"): Entry("down-3-2 seed=1 second:9:brokers-away:20", moments=True),
    ("REMOVAL_GATES", "group_is_stable"): Entry("brokers-away", moments=True),
    ("REMOVAL_GATES", "no_follow_up_is_scheduled"): Entry(
        "wiped-in-hold", (("COVERAGE_GATES", "every_stateful_task_is_covered"),)
    ),
    ("REMOVAL_GATES", "every_task_is_active_once"): Entry("node-lost", moments=True),
    ("REMOVAL_GATES", "agents_agree"): Entry("drain-other-process-id", moments=True),
    ("REMOVAL_GATES", "no_member_is_foreign"): Entry("node-lost", moments=True),
    ("REMOVAL_GATES", "no_process_id_is_duplicated"): Entry("down-3-2 seed=1 second:9:brokers-away:20", moments=True),
    ("REMOVAL_GATES", "identity_holds"): Entry("other-process-id-above"),
    ("REMOVAL_GATES", "statefulset_is_observed"): Entry(
        "down-3-2 seed=1 second:2:controllers-take:60 second:10:template:7"
    ),
    ("REMOVAL_GATES", "retention_is_in_force"): Entry("claims-stay-refused"),
    ("REMOVAL_GATES", "no_rollout_is_half_done"): Entry("template-and-replicas"),
    ("REMOVAL_GATES", "only_pods_without_tasks_go_together"): Entry(
        "down-by-slow-stops", ((ELSEWHERE, "only a pod without tasks is said to be one"),)
    ),
    ("DRAINED_REMOVAL_GATES", "no_earlier_step_is_open"): Entry(
        "drain-3-2 seed=1 second:2:stops-take:400 removal:1:forget-record removal:1:wish:1"
    ),
    ("DRAINED_REMOVAL_GATES", "facts_are_fresh"): Entry("drain-3-2 seed=1 second:9:brokers-slow:4", moments=True),
    ("DRAINED_REMOVAL_GATES", "brokers_answered"): Entry("drain-3-2 seed=1 second:6:brokers-away:20", moments=True),
    ("DRAINED_REMOVAL_GATES", "group_is_stable"): Entry("drain-3-2", moments=True),
    ("DRAINED_REMOVAL_GATES", "every_task_is_active_once"): Entry("drain-3-2", moments=True),
    ("DRAINED_REMOVAL_GATES", "agents_agree"): Entry("drain-3-2", moments=True),
    ("DRAINED_REMOVAL_GATES", "no_member_is_foreign"): Entry("drain-3-2 seed=1 second:6:lose:1", moments=True),
    ("DRAINED_REMOVAL_GATES", "no_process_id_is_duplicated"): Entry(
        "drain-3-2 seed=1 second:6:brokers-away:20", moments=True
    ),
    ("DRAINED_REMOVAL_GATES", "identity_holds"): Entry("drain-other-process-id seed=7", moments=True),
    ("DRAINED_REMOVAL_GATES", "statefulset_is_observed"): Entry(
        "drain-3-2 seed=1 second:2:controllers-take:60 second:8:template:7"
    ),
    ("DRAINED_REMOVAL_GATES", "retention_is_in_force"): Entry("drain-claims-stay"),
    ("DRAINED_REMOVAL_GATES", "no_rollout_is_half_done"): Entry("drain-3-2 seed=1 second:6:template:7", moments=True),
    ("DRAINED_REMOVAL_GATES", "only_pods_without_tasks_go_together"): Entry(
        "drain-4-2",
        (
            (ELSEWHERE, "only pods that are drained go together"),
            ("LEARNER_GATES", "pods_are_drained"),
            ("LEARNER_GATES", "every_stateful_task_is_covered"),
            ("LEARNER_GATES", "no_follow_up_is_scheduled"),
        ),
    ),
    ("NEVER_RAN_GATES", "no_earlier_step_is_open"): Entry(
        "never-ran seed=1 second:2:stops-take:100 second:6:wish:4 second:9:wish:3"
    ),
    ("NEVER_RAN_GATES", "facts_are_fresh"): Entry(why=NOBODY_LOSES),
    ("NEVER_RAN_GATES", "no_process_id_is_duplicated"): Entry(
        "never-ran-beside-a-doubled-process-id", (("NEVER_RAN_GATES", "identity_holds"),)
    ),
    ("NEVER_RAN_GATES", "identity_holds"): Entry("never-ran-beside-another-process-id"),
    ("NEVER_RAN_GATES", "statefulset_is_observed"): Entry(why=NOBODY_LOSES),
    ("NEVER_RAN_GATES", "retention_is_in_force"): Entry("never-ran-claims-stay"),
    ("NEVER_RAN_GATES", "only_pods_without_tasks_go_together"): Entry(
        "down-3-2", ((ELSEWHERE, "only a pod that never ran is said to be one"),)
    ),
    ("REPLACEMENT_GATES", "no_earlier_step_is_open"): Entry(why=REPLACED),
    ("REPLACEMENT_GATES", "facts_are_fresh"): Entry(why=REPLACED),
    ("REPLACEMENT_GATES", "no_volume_goes_with_its_pod"): Entry("claim-deleted-by-hand"),
    ("REPLACEMENT_GATES", "statefulset_is_observed"): Entry(why=REPLACED),
    ("COVERAGE_GATES", "topology_is_known"): Entry("never-ran seed=1 kafka:1:refused", moments=True),
    ("COVERAGE_GATES", "the_source_that_is_demanded_is_in_force"): Entry("drain-other-process-id", moments=True),
    ("COVERAGE_GATES", "tasks_move_to_caught_up_copies"): Entry("never-ran seed=1 kafka:1:refused", moments=True),
    ("COVERAGE_GATES", "raised_standbys_have_room"): Entry(why=ROOM),
    ("COVERAGE_GATES", "positions_are_known"): Entry("behind", moments=True),
    ("COVERAGE_GATES", "end_offsets_were_read"): Entry("behind", moments=True),
    ("COVERAGE_GATES", "every_stateful_task_is_covered"): Entry("behind"),
    ("COVERAGE_GATES", "brokers_choose_caught_up_copies"): Entry("streams-down-4-2 seed=1"),
    ("COVERAGE_GATES", "enough_pods_stay"): Entry("copies-2-1-2", (("COVERAGE_GATES", "every_task_keeps_its_copies"),)),
    ("COVERAGE_GATES", "every_task_keeps_its_copies"): Entry("copies-3-2-3"),
    ("COVERAGE_GATES", "every_task_keeps_its_zones"): Entry("zones-4-3-4"),
    ("COVERAGE_GATES", "tasks_fit_into_memory"): Entry(
        "streams-tight-memory", (("COVERAGE_GATES", "brokers_choose_caught_up_copies"),)
    ),
    ("LEARNER_GATES", "enough_pods_stay"): Entry(
        "drain-copies seed=1 second:6:wish:1",
        ((ELSEWHERE, "a pod that must stay is not drained"), ("LEARNER_GATES", "every_task_keeps_its_copies")),
    ),
    ("LEARNER_GATES", "every_task_keeps_its_copies"): Entry("drain-copies"),
    ("LEARNER_GATES", "every_task_keeps_its_zones"): Entry("drain-zones"),
    ("LEARNER_GATES", "tasks_fit_into_memory"): Entry("drain-tight-memory", moments=True),
    ("TWO_PLACES_GATES", "topology_is_known"): TWO_PLACES["topology_is_known"],
    ("TWO_PLACES_GATES", "tasks_move_to_caught_up_copies"): TWO_PLACES["tasks_move_to_caught_up_copies"],
    ("TWO_PLACES_GATES", "positions_are_known"): TWO_PLACES["positions_are_known"],
    ("TWO_PLACES_GATES", "end_offsets_were_read"): TWO_PLACES["end_offsets_were_read"],
    ("TWO_PLACES_GATES", "every_stateful_task_has_two_places"): Entry("node-drain-behind"),
    ("LEARNER_GATES", "topology_is_known"): Entry("drain-rollout seed=1 kafka:1:refused", moments=True),
    ("LEARNER_GATES", "tasks_move_to_caught_up_copies"): Entry("drain-rollout seed=1 kafka:1:refused", moments=True),
    ("LEARNER_GATES", "learners_have_room"): Entry(why=ROOM),
    ("LEARNER_GATES", "restore_place_is_free"): Entry("budget-of-one", moments=True),
    ("LEARNER_GATES", "announcement_is_heard"): Entry("drain-rollout", moments=True),
    ("LEARNER_GATES", "announcement_is_followed"): Entry(
        "drain-rollout",
        (
            ("LEARNER_GATES", "topology_is_known"),
            ("LEARNER_GATES", "tasks_move_to_caught_up_copies"),
            ("LEARNER_GATES", "pods_are_drained"),
            ("LEARNER_GATES", "every_stateful_task_is_covered"),
        ),
    ),
    ("LEARNER_GATES", "pods_are_drained"): Entry(
        "drain-rollout",
        (("LEARNER_GATES", "every_stateful_task_is_covered"), ("LEARNER_GATES", "no_follow_up_is_scheduled")),
    ),
    ("LEARNER_GATES", "every_stateful_task_is_covered"): Entry(
        "drain-rollout", (("LEARNER_GATES", "pods_are_drained"), ("LEARNER_GATES", "no_follow_up_is_scheduled"))
    ),
    ("LEARNER_GATES", "no_follow_up_is_scheduled"): Entry(
        "drain-rollout", (("LEARNER_GATES", "pods_are_drained"), ("LEARNER_GATES", "every_stateful_task_is_covered"))
    ),
    ("CONVERGENCE_GATES", "group_is_stable"): Entry(
        "wiped-in-hold", (("CONVERGENCE_GATES", "every_task_says_it_runs"),)
    ),
    ("CONVERGENCE_GATES", "no_follow_up_is_scheduled"): Entry("drain-3-2 seed=1 removal:1:kill:0"),
    ("CONVERGENCE_GATES", "every_task_is_active_once"): Entry("wiped-in-hold", moments=True),
    ("CONVERGENCE_GATES", "every_task_says_it_runs"): Entry(
        "wiped-in-hold", (("CONVERGENCE_GATES", "group_is_stable"),)
    ),
    ("CONVERGED_GATES", "no_member_is_foreign"): Entry("down-up-without-claims seed=1 told:15:crash-after"),
    ("CONVERGED_GATES", "facts_are_fresh_or_at_rest"): Entry(
        "streams-demand-pause seed=35 removal:1:brokers-slow:4 second:38:kill:0",
        (("CONVERGED_GATES", "every_task_ran_at_the_look"),),
    ),
    ("CONVERGED_GATES", "every_task_ran_at_the_look"): Entry(
        "streams-demand-down-4-2 seed=224292720000001 second:2:skew:2 second:1:kill config-write:1:freeze-raise:9"
    ),
    ("STEP_END_GATES", "group_is_stable"): Entry(
        "drain-3-2 seed=1 removal:1:lose:0", ((ELSEWHERE, "the tasks are known as a step ends"),)
    ),
    ("STEP_END_GATES", "every_task_is_active_once"): Entry("down-4-2", ((ELSEWHERE, "a step asks for its tasks"),)),
    ("STEP_END_BY_TASKS_GATES", "group_is_stable"): Entry("down-4-2 seed=1 removal:1:lose:0", moments=True),
    ("STEP_END_BY_TASKS_GATES", "every_task_is_active_once"): Entry(
        "down-4-2", (("STEP_END_BY_TASKS_GATES", "every_task_runs"),)
    ),
    ("STEP_END_BY_TASKS_GATES", "every_task_ran_at_the_look"): Entry("streams-demand-down-3-2 seed=1 told:28:wish:3"),
    ("STEP_END_BY_TASKS_GATES", "topology_is_known"): Entry(
        "down-4-2 seed=2",
        ((ELSEWHERE, "the tasks of a step stay known"), ("STEP_END_BY_TASKS_GATES", "every_task_runs")),
    ),
    ("STEP_END_BY_TASKS_GATES", "every_task_runs"): Entry(
        "down-4-2", (("STEP_END_BY_TASKS_GATES", "every_task_is_active_once"),)
    ),
    ("REMOVAL_GATES", "ordinals_begin_at_zero"): Entry("ordinals-shifted"),
    ("DRAINED_REMOVAL_GATES", "ordinals_begin_at_zero"): Entry("ordinals-shifted-in-a-drain"),
    ("NEVER_RAN_GATES", "ordinals_begin_at_zero"): Entry("ordinals-shifted-never-ran"),
    ("REPLACEMENT_GATES", "ordinals_begin_at_zero"): Entry(why=REPLACED),
    ("READINESS_GATES", "ordinals_begin_at_zero"): Entry(
        "ordinals-shifted-undescribed", (("READINESS_GATES", "the_other_pods_are_ready"),)
    ),
    ("READINESS_GATES", "no_volume_goes_with_its_pod"): Entry("streams-undescribed-claim-deleted"),
    ("READINESS_GATES", "facts_are_fresh"): Entry(
        # The successor cannot write its number: a policy refuses it.
        "streams-undescribed-kill seed=1 kafka:20:freeze:12 second:21:deny:12",
        moments=True,
    ),
    ("READINESS_GATES", "statefulset_is_observed"): Entry(
        "streams-undescribed-4-2 seed=1 second:2:controllers-take:20 second:2:stops-take:60 removal:1:forget-record",
        moments=True,
    ),
    ("READINESS_GATES", "retention_is_in_force"): Entry("streams-undescribed-claims-stay"),
    ("READINESS_GATES", "the_other_pods_are_ready"): Entry("streams-undescribed-kill"),
    ("READINESS_GATES", "no_earlier_step_is_open"): Entry(
        "streams-undescribed-4-2 seed=1 second:2:stops-take:60 removal:1:forget-record"
    ),
    **{("RESTLESS_GATES", gate.__name__): Entry(why=RESTLESS) for gate in chains.RESTLESS_GATES},
}


if __name__ == "__main__":
    for line in table():
        print(line)  # noqa: T201 (the table is what this is for)
