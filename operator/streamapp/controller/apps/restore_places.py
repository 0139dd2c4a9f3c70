"""The budget of learners between the applications of this process: asked before each decision, booked after it.

A decision, its question and its booking happen without an await between them, so no two applications take one place.
A cluster is what a StreamApp names: brokers and credentials. What brokers call themselves does not count, since a
hostile broker could then use up the places of another cluster. Called by `reconcile.reconciler`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from streamapp.controller.apps.apps import Application, ClusterAccess
from streamapp.controller.apps.restore_ledger import RestoreLedger
from streamapp.controller.leader.clock import seconds_since_boot
from streamapp.controller.metrics import Metrics
from streamapp.core.actions.decision import RestoreClaim, RestoreNeed
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.snapshot import Snapshot
from streamapp.kube.client.kinds import Key

LOOK_FIRST_SECONDS = 60.0
"""So long, at most, a new process looks for learners that an earlier one asked for: an announcement lasts for less."""


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """The cluster of an application, as its StreamApp names it."""

    brokers: frozenset[str]
    properties: tuple[tuple[str, str], ...] = field(repr=False)
    """Client properties; they can contain passwords, and are never shown."""

    @property
    def label(self) -> str:
        """Its bootstrap brokers."""
        return ",".join(sorted(self.brokers))


class RestorePlaces:
    """Of one process."""

    def __init__(
        self,
        most: int = 0,
        keys: Callable[[], Iterable[Key]] = tuple,
        metrics: Metrics | None = None,
        monotonic: Callable[[], float] = seconds_since_boot,
    ) -> None:
        """Prepare.

        Args:
            most: Applications of one cluster that may make learners at once; 0: no limit.
            keys: Gives the keys of all StreamApps that are known.
            metrics: Where use is shown.
            monotonic: The clock.
        """
        self._ledger = RestoreLedger(most)
        self._keys, self._metrics, self._monotonic = keys, metrics, monotonic
        self._seen: set[Key] = set()
        """The applications of which it is known whether an earlier process asked for learners."""
        self._until: float | None = None
        self._labels: set[str] = set()

    def with_place(self, key: Key, application: Application, snapshot: Snapshot) -> Snapshot:
        """The snapshot with what the budget leaves to the application."""
        if not self._ledger.most:
            return snapshot
        now = self._monotonic()
        place = self._ledger.place(_cluster_of(key, application), key, now)
        if self._is_new(now):
            place = replace(place, is_free=place.is_granted)
        return replace(snapshot, place=place)

    def book(self, key: Key, application: Application, snapshot: Snapshot, claim: RestoreClaim) -> None:
        """Book what a decision on that snapshot wants."""
        if not self._ledger.most:
            return
        if claim.need is RestoreNeed.LEARNING or _is_known(snapshot):
            self._seen.add(key)
        place, now = snapshot.place, self._monotonic()
        self._ledger.book(_cluster_of(key, application), key, claim, now, is_free=place.is_free)
        self._show()

    def leave(self, key: Key) -> None:
        """Drop an application that is gone, or that belongs to another installation."""
        self._seen.add(key)
        self._ledger.forget(key)
        self._show()

    def _is_new(self, now: float) -> bool:
        """Whether this process has not seen all applications yet: learners can be under way that it does not know."""
        if self._until is None:
            self._until = now + LOOK_FIRST_SECONDS
        if now < self._until and not self._seen.issuperset(self._keys()):
            return True
        self._until = now
        return False

    def _show(self) -> None:
        if self._metrics is None or not self._ledger.most:
            return
        used, waiting = self._metrics.restore_places_used, self._metrics.restore_places_waiting
        now = self._monotonic()
        counts = self._ledger.in_use(now), self._ledger.waiting(now)
        labels = {one.label for one in {*counts[0], *counts[1]} if isinstance(one, KafkaCluster)}
        for label in self._labels - labels:
            used.remove(label)
            waiting.remove(label)
        for label in labels:
            for gauge, count in zip((used, waiting), counts, strict=True):
                of_label = (n for one, n in count.items() if isinstance(one, KafkaCluster) and one.label == label)
                gauge.labels(label).set(sum(of_label))
        self._labels = labels


def _cluster_of(key: Key, application: Application) -> KafkaCluster | Key:
    """The cluster; an application that names none is alone."""
    access = application.cluster_access
    if not isinstance(access, ClusterAccess):
        return key
    brokers = frozenset(server.strip() for server in access.bootstrap.split(","))
    return KafkaCluster(brokers, access.properties)


def _is_known(snapshot: Snapshot) -> bool:
    """Whether all agents said what they know of leaving pods; where there are none, nothing was announced."""
    if snapshot.agents is None:
        return True
    running = [pod.ordinal for pod in snapshot.workload.pods if pod.is_running]
    return all(isinstance(snapshot.agents.latest(ordinal), AgentReport) for ordinal in running)
