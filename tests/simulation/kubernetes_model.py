"""A small model of the StatefulSet (`Parallel`, `OnDelete`), its pods and their containers."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from streamapp.core.actions.decision import Fence
from streamapp.core.facts.containers import ContainerEnd
from streamapp.core.facts.hold_record import HoldRecord, RecordUnreadable
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.facts.workload import Budget, Container, Pod, StatefulSet, Volume, Workload
from tests.simulation.kafka_model import GroupModel, Thread
from tests.support.example import process_id

START_TIME = timedelta(seconds=4)
JOIN_TIME = timedelta(seconds=2)
STOP_TIME = timedelta(seconds=3)


@dataclass
class PodModel:
    """A pod with the one container that counts."""

    ordinal: int
    uid: str
    revision: str
    ip: str
    starts_at: datetime
    created_at: datetime
    container_id: str = ""
    running_since: datetime | None = None
    ever_ran: bool = False
    member: str = ""
    stops_at: datetime | None = None


class ConflictError(Exception):
    """The object is another version than the one that was judged (409)."""


class ClusterModel:
    """What the API server has, and the controllers that work on it."""

    def __init__(self, group: GroupModel, replicas: int, now: datetime) -> None:
        self.group = group
        self.statefulset = StatefulSet(
            uid="sts",
            resource_version="1",
            generation=1,
            observed_generation=1,
            replicas=replicas,
            update_revision="v1",
            template_is_written=True,
            is_ours=True,
            record=None,
        )
        self.pods: dict[int, PodModel] = {}
        self.recorded: dict[int, ProcessId | None] = {}
        self.claimed_at: dict[int, datetime] = {}
        self.ends: list[ContainerEnd] = []
        self.budget = Budget.OPEN
        self.count = 0
        self.held_back: dict[int, datetime] = {}
        self._control(now)

    # What the operator may do.

    def patch(self, fence: Fence, **changes: int | HoldRecord | RecordUnreadable | None) -> None:
        own = self.statefulset
        if (fence.uid, fence.resource_version) != (own.uid, own.resource_version):
            raise ConflictError(fence.resource_version)
        self._write(**changes)

    def delete_pod(self, uid: str, now: datetime) -> None:
        for pod in self.pods.values():
            if pod.uid == uid and pod.stops_at is None:
                pod.stops_at = now + STOP_TIME

    # What befalls it.

    def change_template(self, revision: str) -> None:
        self._write(update_revision=revision)

    def crash(self, ordinal: int, now: datetime) -> None:
        """The container ends and is started again in the same pod."""
        pod = self.pods.get(ordinal)
        if pod is not None and pod.running_since is not None and pod.stops_at is None:
            self._end(pod, now, seen=True)
            pod.starts_at = now + START_TIME

    def lose(self, ordinal: int, now: datetime) -> None:
        """The pod goes with its node; nobody sees its container end. Another one comes in half a minute."""
        pod = self.pods.pop(ordinal, None)
        if pod is not None:
            self._end(pod, now, seen=False)
            self.held_back[ordinal] = now + timedelta(seconds=30)

    def tick(self, now: datetime) -> None:
        """One second passes."""
        self._control(now)
        for pod in list(self.pods.values()):
            self._run(pod, now)

    def workload(self, now: datetime) -> Workload:
        return Workload(
            read_at=now,
            statefulset=self.statefulset,
            pods=tuple(self._shown(pod) for pod in self.pods.values()),
            volumes=tuple(
                Volume(ordinal=Ordinal(ordinal), process_id=recorded, created_at=self.claimed_at[ordinal])
                for ordinal, recorded in self.recorded.items()
            ),
            budget=self.budget,
        )

    def _write(self, **changes: object) -> None:
        own = self.statefulset
        moved = replace(own, resource_version=str(int(own.resource_version) + 1), **changes)  # type: ignore[arg-type]  # fields by name
        is_spec = moved.replicas != own.replicas or moved.update_revision != own.update_revision
        self.statefulset = replace(moved, generation=own.generation + int(is_spec))

    def _control(self, now: datetime) -> None:
        self.statefulset = replace(self.statefulset, observed_generation=self.statefulset.generation)
        for ordinal in range(self.statefulset.replicas):
            if ordinal not in self.pods and self.held_back.get(ordinal, now) <= now:
                self.count += 1
                self.pods[ordinal] = PodModel(
                    ordinal=ordinal,
                    uid=f"pod-{ordinal}-{self.count}",
                    revision=self.statefulset.update_revision,
                    ip=f"10.1.{self.count // 200}.{self.count % 200 + 1}",
                    starts_at=now + START_TIME,
                    created_at=now,
                )
                self.recorded.setdefault(ordinal, None)
                self.claimed_at.setdefault(ordinal, now)
        for pod in self.pods.values():
            if pod.ordinal >= self.statefulset.replicas and pod.stops_at is None:
                pod.stops_at = now + STOP_TIME

    def _run(self, pod: PodModel, now: datetime) -> None:
        if pod.stops_at is not None and now >= pod.stops_at:
            if pod.running_since is not None:
                self._end(pod, now, seen=True)
            del self.pods[pod.ordinal]
        elif pod.running_since is None and now >= pod.starts_at:
            self.count += 1
            pod.container_id, pod.running_since, pod.ever_ran = f"c-{self.count}", now, True
        elif pod.running_since is not None and not pod.member and now - pod.running_since >= JOIN_TIME:
            pod.member = f"m-{pod.ordinal}-{pod.container_id}"
            self.group.join(Thread(pod.member, pod.ordinal, pod.ip, process_id(pod.ordinal)), now)

    def _end(self, pod: PodModel, now: datetime, *, seen: bool) -> None:
        """The application does not leave the group by itself: its session goes on until somebody ends it."""
        if seen and pod.running_since is not None:
            self.ends.append(
                ContainerEnd(pod_uid=pod.uid, container_id=pod.container_id, finished_at=now, reason="Completed")
            )
        if pod.member in self.group.threads:
            self.group.threads[pod.member].died_at = now
        pod.running_since, pod.member = None, ""

    def _shown(self, pod: PodModel) -> Pod:
        return Pod(
            ordinal=Ordinal(pod.ordinal),
            uid=pod.uid,
            revision=pod.revision,
            ips=(pod.ip,),
            ready=pod.running_since is not None and bool(pod.member),
            terminating=pod.stops_at is not None,
            container=Container(id=pod.container_id or None, running_since=pod.running_since, ever_ran=pod.ever_ran),
            created_at=pod.created_at,
        )
