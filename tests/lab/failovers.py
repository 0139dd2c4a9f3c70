"""What a group and its StreamApp show while the group's coordinator fails over, each look with its moment.

All moments are of this machine's monotonic clock. The group is read by the product's own reader, over a connection of
its own: the operator's looks and these know nothing of each other.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.ownership import require_own
from lab.errors import LabError
from lab.scenarios import demo_application
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import kill_container
from lab.scenarios.holds.timed_watch import TimedWatch, timed_watch
from lab.scenarios.observed_app import ObservedApp, start_all, unique_name
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import KafkaAccessError
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.group.groups import ClassicGroupState, DecodedGroup, read_group
from streamapp.kafka.group.rebalance import ProbeNotRemoved, trigger_rebalance
from streamapp.wire.errors import UndecodableError
from tests.lab.three_brokers import BOOTSTRAP, ThreeBrokers

UNKNOWN_FACTS = frozenset({"BrokersUnreachable", "GroupOutdated"})
"""The reasons for which pods are held while the group is not shown as it is."""
LOOK_SECONDS = 0.1
_DEADLINE_SECONDS = 5.0
_NEXT_LOOK_SECONDS = 3.0
"""In a hold the operator looks at the group every two seconds, and until the next look it can act on the one before."""
_FIELDS = tuple(
    f'.status.conditions[?(@.type=="{kind}")].{field}'
    for kind in ("ScaleDownHeld", "Converged")
    for field in ("status", "reason")
)
_SETTLED = {ClassicGroupState.STABLE, ClassicGroupState.EMPTY, ClassicGroupState.DEAD}


@dataclass(frozen=True)
class Shown:
    """What brokers answered to one look at the group."""

    at: float
    """When they were asked."""
    state: ClassicGroupState | None
    """None where it is unknown."""
    generations: Mapping[str, int] = field(default_factory=dict)
    """By member of a stable group: the generation that it was in when it joined."""

    def is_of(self, before: "Shown") -> bool:
        """Whether the group is stable and as it was then, or as later rebalances made it."""
        ours = self.generations
        return self.state is ClassicGroupState.STABLE and all(
            ours.get(member, -1) >= generation for member, generation in before.generations.items()
        )

    def is_older_than(self, before: "Shown") -> bool:
        """Whether it is a state that the group was in before."""
        return self.state in _SETTLED and not self.is_of(before)


@dataclass
class GroupWatch:
    """Every look so far, in order."""

    looks: list[Shown] = field(default_factory=list)
    failure: BaseException | None = None
    """What ended the looking before its time."""

    def latest_stable(self) -> Shown:
        """The last look that showed a stable group."""
        return next(one for one in reversed(self.looks) if one.state is ClassicGroupState.STABLE)

    def wait_for(self, what: str, holds: Callable[[Shown], bool], timeout_seconds: float = 90) -> None:
        """Wait for a look that shows something from now on, and return at once."""
        began = len(self.looks)
        ends = time.monotonic() + timeout_seconds
        while not any(holds(one) for one in self.looks[began:]):
            assert self.failure is None, self.failure
            assert time.monotonic() < ends, f"{what}: not within {timeout_seconds:.0f} s"
            time.sleep(LOOK_SECONDS / 10)

    def wait_for_rebalance(self) -> None:
        """Wait until a rebalance begins."""
        self.wait_for("a rebalance begins", lambda one: one.state is ClassicGroupState.PREPARING_REBALANCE)

    def wait_until_stable(self) -> None:
        """Wait until the next look at a stable group."""
        self.wait_for("the group is stable", lambda one: one.state is ClassicGroupState.STABLE)

    def wait_until_quiet(self, seconds: float) -> None:
        """Wait until the group has not rebalanced for so long."""

        def is_quiet() -> bool:
            since = self.looks[-1].at - seconds
            lately = [one for one in self.looks if one.at >= since]
            return self.looks[0].at < since and all(one == replace(self.looks[-1], at=one.at) for one in lately)

        wait_until(f"no rebalance for {seconds:.0f} s", is_quiet, 240, 1)

    def first_as(self, before: Shown, since: float) -> float | None:
        """When the group was first shown as it was before, or newer, after a moment; None: not yet."""
        return next((one.at for one in self.looks if one.at > since and one.is_of(before)), None)


@contextmanager
def group_watch(bootstrap: str, application_id: str) -> Iterator[GroupWatch]:
    """Look at the group several times a second until the block is left."""
    watch, ends = GroupWatch(), threading.Event()

    def look() -> None:
        try:
            asyncio.run(_look(bootstrap, application_id, watch, ends))
        except BaseException as error:
            watch.failure = error
            raise

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ends.set()
        thread.join(_DEADLINE_SECONDS * 2)
    assert watch.failure is None, watch.failure


async def _look(bootstrap: str, application_id: str, watch: GroupWatch, ends: threading.Event) -> None:
    cluster = KafkaCluster(read_settings(bootstrap, {}), application_id)
    try:
        while not ends.is_set():
            at = time.monotonic()
            try:
                watch.looks.append(_shown(at, await read_group(cluster.group, _DEADLINE_SECONDS)))
            except (KafkaAccessError, UndecodableError):
                watch.looks.append(Shown(at, None))
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        cluster.close()


def _shown(at: float, group: DecodedGroup) -> Shown:
    told = {one.member_id: one.subscription.generation for one in group.members if one.subscription is not None}
    return Shown(at, group.state, {member: number for member, number in told.items() if number is not None})


def trigger_one_rebalance(one: ObservedApp) -> None:
    """Let the group rebalance, as the operator does."""

    async def trigger() -> None:
        cluster = KafkaCluster(read_settings(one.bootstrap, {}), one.app.application.application_id)
        try:
            members = (await read_group(cluster.group, _DEADLINE_SECONDS)).members
            model = next(each.subscription for each in members if each.subscription is not None)
            # One that goes on already is as good.
            done = await trigger_rebalance(cluster.group, model, _DEADLINE_SECONDS)
            assert not isinstance(done, ProbeNotRemoved), done
        finally:
            cluster.close()

    asyncio.run(trigger())


@dataclass(frozen=True)
class Watches:
    """All that is looked at while a coordinator fails over."""

    three: ThreeBrokers
    one: ObservedApp
    group: GroupWatch
    conditions: TimedWatch
    """Status and reason of the conditions `ScaleDownHeld` and `Converged`."""
    replicas: TimedWatch
    """Of the StatefulSet."""

    def aim(self) -> "Callable[[], Failover]":
        """Find the coordinator of the group, and give what sends SIGKILL to it at once and gives what follows."""
        number = self.three.coordinator(self.one.app.application.application_id)
        pod = self.three.pod(number)

        def kill() -> Failover:
            before = self.group.latest_stable()
            kill_container(pod)
            return Failover(self, number, time.monotonic(), before)

        return kill

    def give_back(self) -> "Failover":
        """Let the preferred broker coordinate the group again, without any broker's end, and give what follows."""
        number = self.three.coordinator(self.one.app.application.application_id)
        before = self.group.latest_stable()
        self.three.elect_preferred(self.one.app.application.application_id)
        return Failover(self, number, time.monotonic(), before)

    def removals(self) -> list[float]:
        """When the StatefulSet got fewer replicas."""
        events = self.replicas.events
        return [later.at for earlier, later in pairwise(events) if int(later.words[0]) < int(earlier.words[0])]

    def reasons(self, since: float, until: float) -> list[tuple[float, str]]:
        """Why pods were held between two moments, else why the group was not converged; empty for neither."""
        told = [(event.at, _reason(event.words)) for event in self.conditions.events]
        first = next((reason for at, reason in reversed(told) if at <= since), "")
        later = [each for each in told if since < each[0] < until]
        return [(since, first), *(new for old, new in pairwise([(since, first), *later]) if new[1] != old[1])]


def _reason(words: tuple[str, ...]) -> str:
    is_held, held, is_converged, converged = words
    # Where brokers do not answer it is Unknown whether the group has converged.
    return held if is_held == "True" else "" if is_converged == "True" else converged


@dataclass(frozen=True)
class Failover:
    """The coordinator was killed, or gave its place to another broker."""

    seen: Watches
    former: int
    """The broker that coordinated the group."""
    at: float
    before: Shown
    """The last state of the group that was seen before."""

    def known_again(self, timeout_seconds: float = 60) -> float:
        """Wait until the group is shown as it was, or newer, and give the moment."""
        found = self.seen.group.first_as
        what = "the group is shown as it was"
        wait_until(what, lambda: found(self.before, self.at) is not None, timeout_seconds, LOOK_SECONDS)
        at = found(self.before, self.at)
        assert at is not None
        return at

    def older_states(self) -> list[Shown]:
        """The looks that showed the group as it was earlier, until it was shown as it was, or newer."""
        again = self.seen.group.first_as(self.before, self.at)
        until = float("inf") if again is None else again
        return [one for one in self.seen.group.looks if self.at < one.at < until and one.is_older_than(self.before)]

    def figures(self) -> str:
        """Say in one line what was seen, with seconds since the failover began."""
        again = self.known_again()
        told = (f"{at - self.at:.1f} s {reason or 'converged'}" for at, reason in self.seen.reasons(self.at, again))
        gone = (f"{at - self.at:+.1f} s" for at in self.seen.removals())
        older = [one.at - self.at for one in self.older_states()]
        outdated = f", older state from {older[0]:.1f} s to {older[-1]:.1f} s" if older else ""
        return f"known again after {again - self.at:.1f} s{outdated}; {'; '.join(told)}; removals {', '.join(gone)}"

    def require_hold(self) -> None:
        """Nothing was removed while the group was not shown as it is, and the resource said why."""
        again = self.known_again()
        early = [at - self.at for at in self.seen.removals() if self.at + _NEXT_LOOK_SECONDS < at < again]
        assert early == [], self.figures()
        assert {reason for _, reason in self.seen.reasons(self.at, again)} & UNKNOWN_FACTS, self.figures()

    def require_removal_after(self) -> None:
        """The step was taken when the group was known again, and not before the coordinator went."""
        assert self.seen.removals(), "no pod was removed"
        assert min(self.seen.removals()) > self.known_again(), self.figures()


@contextmanager
def watched(session: Session, three: ThreeBrokers, one: ObservedApp) -> Iterator[Watches]:
    """Watch the group, the StreamApp and its StatefulSet until the block is left."""
    namespace, name = one.app.namespace, one.app.name
    with (
        group_watch(one.bootstrap, one.app.application.application_id) as group,
        timed_watch(session, namespace, f"streamapp/{name}", _FIELDS) as conditions,
        timed_watch(session, namespace, f"statefulset/{name}", (".spec.replicas",)) as replicas,
    ):
        wait_until("all watches have begun", lambda: bool(group.looks and conditions.events and replicas.events), 30)
        yield Watches(three, one, group, conditions, replicas)


@contextmanager
def deployed(kubectl: Kubectl, word: str, settings: Mapping[str, str]) -> Iterator[ObservedApp]:
    """Run the application at the three brokers, with three pods under load, for the time of the block."""
    common = {"STREAMS_NUM_STANDBY_REPLICAS": "1", "JDK_JAVA_OPTIONS": "-Xmx192m -XX:+UseSerialGC", **settings}
    application = DemoApplication(
        unique_name(word), common, 20_000, 200, f"t-{word}", "20m", bootstrap=BOOTSTRAP, copies=3
    )
    require_own(kubectl, application.namespace)
    demo_application.delete_namespaces(kubectl, application.namespace)
    observed = ObservedApp.of(kubectl, BOOTSTRAP, application)
    try:
        start_all({observed: 3})
        yield observed
    finally:
        demo_application.delete_namespaces(kubectl, application.namespace)


def fresh(one: ObservedApp) -> ObservedApp:
    """Observe it through new clients: those of before remember which broker led what."""
    return ObservedApp.of(one.app.kubectl, one.bootstrap, one.app.application)


def now_of(one: ObservedApp) -> int:
    """The broker's time of the newest input, in milliseconds; asked again while a new leader does not know it."""
    found: list[int] = []

    def is_known() -> bool:
        with suppress(LabError):
            found.append(fresh(one).clock())
        return bool(found) and found[-1] > 0

    wait_until("the newest input is known", is_known, 60, 1)
    return found[-1]


def worst_gap(one: ObservedApp, began_ms: int) -> float:
    """The longest wait of any partition since then, in seconds."""
    worst = fresh(one).gaps(began_ms, now_of(one)).worst()
    assert worst is not None, "no input came to any partition"
    assert worst.seconds is not None, "no input came to that partition"
    return worst.seconds


def begin_hold(one: ObservedApp, replicas: int) -> str:
    """Ask for fewer replicas under a condition that is never met, wait until that is on record, and give the ID."""
    # With no lag allowed under load no copy is ever near enough.
    one.patch({"replicas": replicas, "learners": {"acceptableRecoveryLag": 0}})
    wait_until("the hold is on record", lambda: "hold" in one.record(), 60, LOOK_SECONDS)
    return str(one.record()["hold"]["id"])


def let_go(one: ObservedApp) -> None:
    """Take that condition back: the hold goes on, and can end."""
    one.patch({"learners": None})
