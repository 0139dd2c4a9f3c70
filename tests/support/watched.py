"""An application with agents that a test lets live: each look shows it as it is then."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from streamapp.api.validation.parse import parse
from streamapp.core.actions.decision import Decision
from streamapp.core.decide import decide
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.agent_reports import AgentReport, AgentsSeen, LocalTask, TaskState
from streamapp.core.facts.group import Member
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import DesiredReplicas, DesiredSample
from streamapp.core.reasons import Reason
from streamapp.flightrecord.changes import Look
from tests.controller.doubles.bench import a_stream_app
from tests.support import example
from tests.support.example import NOW, SECOND

POLICY = ScalingPolicy(agent=True)
_DECIDED = decide(example.snapshot(), POLICY)


class Watched:
    """Three pods with two tasks each, in a group that never rests longer than the test wants."""

    def __init__(self, policy: ScalingPolicy = POLICY, **spec: object) -> None:
        self.policy, self.spec = policy, spec
        self.pods = {ordinal: example.pod(ordinal) for ordinal in range(3)}
        self.owned: dict[int, tuple[int, ...]] = {0: (0, 1), 1: (2, 3), 2: (4, 5)}
        self.jvms = dict.fromkeys(range(3), 1)
        self.restoring: frozenset[int] = frozenset()
        self.desired = [DesiredSample(NOW, 3)]
        self.granted = 3
        self.is_converged = True

    def restart(self, ordinal: int) -> None:
        """Its container begins anew."""
        self.jvms[ordinal] += 1
        pod = self.pods[ordinal]
        again = replace(pod.container, id=f"containerd://{ordinal}-{self.jvms[ordinal]}")
        self.pods[ordinal] = replace(pod, container=again)

    def replace_pod(self, ordinal: int, revision: str = example.REVISION) -> None:
        """Another pod stands in its place."""
        self.restart(ordinal)
        self.pods[ordinal] = replace(self.pods[ordinal], uid=f"pod-{ordinal}-{self.jvms[ordinal]}", revision=revision)

    def wish(self, replicas: int, at: float) -> None:
        """The user wants another number; it is granted at once."""
        self.desired.append(DesiredSample(NOW + at * SECOND, replicas))
        self.granted, self.is_converged = replicas, False

    def look(self, at: float, silent: Iterable[int] = ()) -> Look:
        """The pass so many seconds after the beginning; agents of `silent` pods give no answer."""
        now = NOW + at * SECOND
        members = [example.member(ordinal, active=self.owned.get(ordinal, ())) for ordinal in sorted(self.pods)]
        whole = example.snapshot()
        statefulset = replace(example.statefulset(), replicas=self.granted)
        words = {Ordinal(n): (self._report(n, members[n], at),) for n in self.pods if n not in silent}
        snapshot = replace(
            whole,
            now=now,
            app=replace(whole.app, desired=_wished(self.desired)),
            workload=replace(whole.workload, read_at=now, statefulset=statefulset, pods=tuple(self.pods.values())),
            readings=tuple(example.reading(tuple(members), (ago - at) * SECOND) for ago in (1, 15)),
            agents=AgentsSeen(words, ()) if self.policy.agent else None,
        )
        resource = a_stream_app()
        metadata = {"uid": example.UID, "generation": 1, "creationTimestamp": "2026-11-21T11:00:00Z"}
        resource["metadata"].update(metadata, resourceVersion="1")
        resource["spec"].update(self.spec)
        return Look(
            streamapp=parse(resource),
            resource=resource,
            pods=(),
            snapshot=snapshot,
            policy=self.policy,
            decision=self._decision(),
        )

    def _report(self, ordinal: int, member: Member, at: float) -> AgentReport:
        tasks = tuple(
            LocalTask(
                id=example.task(number),
                is_active=True,
                state=TaskState.RESTORING if number in self.restoring else TaskState.RUNNING,
            )
            for number in self.owned.get(ordinal, ())
        )
        changes: dict[str, Any] = {
            "pod_uid": self.pods[ordinal].uid,
            "incarnation": f"jvm-{self.jvms[ordinal]}",
            "tasks": tasks,
        }
        return example.report(member, (0.5 - at) * SECOND, **changes)

    def _decision(self) -> Decision:
        waits = None if self.is_converged else Refusal(Reason.TasksRestoring)
        return replace(_DECIDED, convergence=replace(_DECIDED.convergence, waits_for=waits))


def _wished(samples: list[DesiredSample]) -> DesiredReplicas:
    return DesiredReplicas(replicas=samples[-1].replicas, history=tuple(samples))
