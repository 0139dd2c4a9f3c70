"""Deliberate faults in the product: each takes one safeguard away, and the sweep has to notice.

They test the judge, not the product. A mutant with a word in `survives` is one that the sweep cannot notice, because
another safeguard stands behind the one that was taken away; `docs/proofs.md` says which.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from streamapp.api.names import PROCESS_ID
from streamapp.api.validation.parse import StreamApp
from streamapp.controller.apps.group_poller import GroupPoller
from streamapp.controller.leader.clock import SteadyClock
from streamapp.controller.leader.election import Elector
from streamapp.controller.reconcile import reconciler
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.reconcile.gather import Gathered, Gatherer, ReplicaFacts
from streamapp.controller.reconcile.reconciler import Reconciler
from streamapp.core import decide
from streamapp.core.actions import announcement, beside, open_step, rollout, scale_down
from streamapp.core.actions.decision import CloseBudget, Decision, Evict, GrantReplicas, RestartPod
from streamapp.core.actions.plan import PlanBuilder
from streamapp.core.evidence import coverage, eviction
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.facts.containers import MemberKey, ObservedMembers
from streamapp.core.facts.group import GroupDescription, GroupUnreadable
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable, Unknown
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.workload import Container
from streamapp.core.gates import chains, coverage_gates, drain_gates, evaluate, safety_gates
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import GateInput
from streamapp.core.gates.evaluate import Approval
from streamapp.core.reasons import Reason
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import CLAIMS, STREAM_APPS
from streamapp.kube.objects import claims, owned_objects, status


@dataclass(frozen=True, slots=True)
class Mutant:
    """One."""

    name: str
    changes: Callable[[], Iterator[Any]]
    """Patches to be entered."""
    scene: str = "down-4-3"
    """Where it shows."""
    kinds: tuple[str, ...] = ()
    """By which kinds of faults; empty: by any."""
    site: str = ""
    """At which calls; empty: at any."""
    survives: str = ""
    """Why it cannot be noticed."""
    is_long: bool = False
    """Whether it is found after more than twelve seconds: the part `judges` has it then, and the gate has not."""

    @property
    def shows_soon(self) -> bool:
        """Whether the scene as it is, or almost, shows it within seconds; the gate has these."""
        return not (self.kinds or self.survives or self.is_long)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Have the product do it."""
        entered = list(self.changes())
        for one in entered:
            one.start()
        try:
            yield
        finally:
            for one in reversed(entered):
                one.stop()


def _without(*dropped: object) -> Iterator[Any]:
    for module in (evaluate, chains):
        for name in ("REMOVAL_GATES", "COVERAGE_GATES", "NEVER_RAN_GATES", "DRAINED_REMOVAL_GATES", "LEARNER_GATES"):
            if hasattr(module, name):
                kept = tuple(gate for gate in getattr(module, name) if gate not in dropped)
                yield patch.object(module, name, kept)


def _no_fence() -> Iterator[Any]:
    sound = KubeClient.apply

    async def apply(self: KubeClient, kind: Any, body: Json, **options: Any) -> Json:
        metadata = {key: value for key, value in body["metadata"].items() if key not in {"uid", "resourceVersion"}}
        return await sound(self, kind, {**body, "metadata": metadata}, **options)

    yield patch.object(KubeClient, "apply", apply)


def _clock_is_set() -> Iterator[Any]:
    yield patch.object(SteadyClock, "__call__", lambda self: self._wall())


def _runs_by_the_nodes_clock() -> Iterator[Any]:
    yield patch.object(Container, "known_since", property(lambda self: self.running_since))


def _lease_unasked() -> Iterator[Any]:
    """Whoever led once goes on as if it led for ever."""

    async def keep(self: Elector) -> None:
        while True:
            await asyncio.sleep(2.0)
            with suppress(KubeError):
                await self.renew()

    yield patch.object(Elector, "keep", keep)
    yield patch.object(Elector, "check", lambda self: None)
    yield patch.object(Elector, "_verify_own", lambda self, lease: None)


def _one_reading() -> Iterator[Any]:
    yield patch.object(evaluate, "_agreed", lambda case, coverage: case.reading)


def _old_positions() -> Iterator[Any]:
    sound = evaluate._agreed

    def agreed(case: GateInput, rules: Any) -> Any:
        policy = case.policy
        patient = replace(policy, timing=replace(policy.timing, position_age=timedelta(hours=1)))
        return sound(replace(case, evidence=case.evidence.under(patient)), rules)

    yield patch.object(evaluate, "_agreed", agreed)


def _no_freshness() -> Iterator[Any]:
    yield patch.object(Applier, "_freshness", lambda self, gathered: lambda: None)


def _no_margin() -> Iterator[Any]:
    for module in (beside, open_step):
        sound = module.evictable

        def evictable(observed: Any, ends: Any, group: Any, _: timedelta, *, sound: Any = sound, **how: Any) -> Any:
            return sound(observed, ends, group, timedelta(0), **how)

        yield patch.object(module, "evictable", evictable)


def _evict_by_address() -> Iterator[Any]:
    def evictions(observed: Any, evidence: Evidence, statefulset: Any) -> Any:
        snapshot = evidence.snapshot
        group = snapshot.readings[0].group if snapshot.readings else None
        ended = {end.pod_uid for end in snapshot.container_ends}
        hosts = {ip for pod in snapshot.workload.pods if pod.uid in ended for ip in pod.ips}
        if not isinstance(group, GroupDescription):
            return ()
        keys = tuple(
            MemberKey(member.id, member.instance_id) for member in group.members if member.client_host in hosts
        )
        return (Evict(members=keys, end=None, reason=Reason.ContainerEnded),) if keys else ()

    yield patch.object(beside, "evictions", evictions)


def _no_second_look() -> Iterator[Any]:
    async def still_holds(self: Applier, gathered: Gathered, to_replicas: int | None) -> None:
        """Trust what was read."""

    yield patch.object(Applier, "_check_again", still_holds)


def _judged_by_watches() -> Iterator[Any]:
    """Do what the watches told, without a second judgement on live reads."""
    yield patch.object(Reconciler, "_is_all_done", lambda self, gathered, decision: True)
    yield patch.object(Reconciler, "_must_be_live", _only_at_first)
    yield from _no_second_look()


def _once(*kinds: type) -> Iterator[Any]:
    """Judge steps of these kinds once, by what the watches told; all others as ever."""
    sound = Reconciler._is_all_done

    def is_all_done(self: Reconciler, gathered: Gathered, decision: Decision) -> bool:
        is_of_these = bool(decision.plan) and all(isinstance(step, kinds) for step in decision.plan)
        return is_of_these or sound(self, gathered, decision)

    yield patch.object(Reconciler, "_is_all_done", is_all_done)
    yield patch.object(Reconciler, "_must_be_live", _only_at_first)


def _placed_by_watches() -> Iterator[Any]:
    """Nor is it remembered from live reads alone who runs where."""
    sound = Gatherer._gathered

    def gathered(self: Gatherer, facts: ReplicaFacts, *others: Any) -> Gathered:
        return replace(sound(self, replace(facts, is_live=True), *others), is_live=facts.is_live)

    yield from _once(Evict)
    yield patch.object(Gatherer, "_gathered", gathered)


def _placed_by_one_read() -> Iterator[Any]:
    """A capture counts as soon as one read of the pods has placed it."""
    sound = eviction.remember

    def remember(*known: Any) -> tuple[ObservedMembers, ...]:
        return tuple(replace(one, is_confirmed=True) for one in sound(*known))

    yield patch.object(eviction, "remember", remember)


def _only_at_first(reconciler: Reconciler, key: Any) -> bool:
    application = reconciler._applications.find(key)
    return application is None or not application.memory.is_fenced


def _no_take_over() -> Iterator[Any]:
    async def fence_hold_record(*_: Any) -> bool:
        return False

    yield patch.object(Applier, "fence_hold_record", fence_hold_record)


def _ends_before_join() -> Iterator[Any]:
    sound = GroupPoller._ends

    async def ends(self: Any, task_set: TaskSet | TopologyUnknown) -> EndOffsets | EndsUnreadable:
        known: EndOffsets | None = getattr(self.group, "ends_before", None)
        self.group.ends_before = await sound(self, task_set)
        return known or self.group.ends_before

    yield patch.object(GroupPoller, "_ends", ends)


def _unknown_is_caught_up() -> Iterator[Any]:
    sound = coverage.is_caught_up
    yield patch.object(coverage, "is_caught_up", lambda lag, limit: isinstance(lag, Unknown) or sound(lag, limit))


def _containers_do_not_matter() -> Iterator[Any]:
    yield patch.object(coverage, "has_run_since", lambda pod, rebalance: True)


def _all_at_once() -> Iterator[Any]:
    def next_removal(evidence: Any, granted: int, target: int) -> RemovalCandidate:
        return RemovalCandidate(
            RemovalKind.ONE, tuple(Ordinal(number) for number in range(granted - 1, target - 1, -1)), target
        )

    yield patch.object(scale_down, "next_removal", next_removal)
    yield from _without(safety_gates.only_pods_without_tasks_go_together)


def _steps_overlap() -> Iterator[Any]:
    yield patch.object(open_step, "_missing", lambda step, statefulset, evidence: None)
    yield from _without(safety_gates.no_earlier_step_is_open)


def _pause_ignored() -> Iterator[Any]:
    yield patch.object(decide, "_withdrawn", lambda snapshot: None)


def _growth_waits_for_kafka() -> Iterator[Any]:
    sound = decide._branch

    def branch(evidence: Evidence, step_progress: Any) -> Any:
        snapshot: Any = evidence.snapshot
        latest = snapshot.latest
        if latest is None or isinstance(latest.group, GroupUnreadable):
            desired = replace(snapshot.app.desired, replicas=snapshot.workload.statefulset.replicas)
            evidence = Evidence(replace(snapshot, app=replace(snapshot.app, desired=desired)), evidence.policy)
        return sound(evidence, step_progress)

    yield patch.object(decide, "_branch", branch)
    yield from _growth_waits_for_reads()


def _growth_waits_after_a_denial() -> Iterator[Any]:
    sound = Gatherer._app
    yield patch.object(Gatherer, "_app", lambda self, *of, **how: replace(sound(self, *of, **how), is_rejected=False))


def _growth_waits_for_reads() -> Iterator[Any]:
    yield patch.object(reconciler, "decide_raise", lambda *_: None)


def _record_stays() -> Iterator[Any]:
    sound = PlanBuilder._wanted_record
    yield patch.object(PlanBuilder, "_wanted_record", lambda self, before: sound(self, before) or before)


def _step_not_on_record() -> Iterator[Any]:
    sound = Applier._grant

    async def grant(self: Applier, gathered: Gathered, step: GrantReplicas) -> None:
        record = replace(step.record, step=None) if step.is_removal else step.record  # type: ignore[type-var]
        await sound(self, gathered, replace(step, record=record))

    yield patch.object(Applier, "_grant", grant)


def _budget_stays_closed() -> Iterator[Any]:
    sound = owned_objects.apply_budget

    async def apply_budget(client: Any, manifest: Json, live: Json | None, owner: str, *check: Any) -> None:
        if live is None or manifest["spec"]["maxUnavailable"] == 0:
            await sound(client, manifest, live, owner, *check)

    yield patch.object(owned_objects, "apply_budget", apply_budget)


def _writes_the_wish() -> Iterator[Any]:
    sound = status.write

    async def write(client: KubeClient, app: Json, body: Json) -> None:
        metadata = {name: app["metadata"][name] for name in ("namespace", "name")}
        if body.get("statefulSetReplicas") != app["spec"]["replicas"]:
            await client.apply(STREAM_APPS, {"metadata": metadata, "spec": {"replicas": body["statefulSetReplicas"]}})
        await sound(client, app, body)

    yield patch.object(status, "write", write)


def _claim_goes_too() -> Iterator[Any]:
    sound = Applier._grant

    async def grant(self: Applier, gathered: Gathered, step: GrantReplicas) -> None:
        await sound(self, gathered, step)
        for claim in gathered.live.claims if step.is_removal else ():
            known = claim["metadata"]
            if known["name"].endswith(f"-{step.to_replicas}"):
                version = known["resourceVersion"]
                await self._client.delete(
                    CLAIMS, known["namespace"], known["name"], uid=known["uid"], resource_version=version
                )

    yield patch.object(Applier, "_grant", grant)


def _any_process_id() -> Iterator[Any]:
    async def record(client: KubeClient, _: StreamApp, live: Json, ordinal: Ordinal, process_id: object) -> None:
        metadata = {name: live["metadata"][name] for name in ("namespace", "name")}
        await client.apply(CLAIMS, {"metadata": {**metadata, "annotations": {PROCESS_ID: str(process_id)}}})

    def shown(attribution: Any, workload: Any) -> Any:
        return {clash.by_host: clash.member.process_id for clash in attribution.contradictions}

    yield patch.object(claims, "record_process_id", record)
    yield patch.object(beside, "unrecorded", shown)


def _restarts_unjudged() -> Iterator[Any]:
    def allowed(evidence: Evidence, candidate: Any, override: Any = None) -> Approval:
        return Approval(candidate=candidate, reason=Reason.RestartCovered, forced=None, observed=())

    yield patch.object(rollout, "evaluate", allowed)


def _restarts_together() -> Iterator[Any]:
    yield from _restarts_unjudged()
    yield patch.object(rollout._Rollout, "_in_turn", lambda self, allowed: allowed)


def _undrained() -> Iterator[Any]:
    """Nor does anybody bring about that tasks move, which would empty the pod within the time of two readings."""
    yield from _without(drain_gates.pods_are_drained, safety_gates.no_follow_up_is_scheduled)
    yield patch.object(PlanBuilder, "_settling_rebalance", lambda self: None)


def _nobody_called_back() -> Iterator[Any]:
    sound = announcement.named

    def named(evidence: Evidence, leaving: Any) -> Any:
        told = [report.heard.process_ids for report in evidence.fresh_reports.values()]
        return sound(evidence, leaving) or frozenset().union(*told)

    yield patch.object(announcement, "named", named)


MUTANTS = (
    Mutant(
        "a pod goes before it is drained",
        _undrained,
        "drain-3-2",
    ),
    Mutant("nobody is called back", _nobody_called_back, "drain-up-down"),
    Mutant("coverage always holds", lambda: _without(coverage_gates.every_stateful_task_is_covered), "behind"),
    Mutant(
        "an unknown lag is caught up",
        _unknown_is_caught_up,
        "up-1-4-down",
        ("restart in place",),
        "told",
    ),
    Mutant("ends are read before the join", _ends_before_join, "behind"),
    Mutant("one reading is enough", _one_reading),
    Mutant("dates are of a clock that is set", _clock_is_set, "clock-set-forward"),
    Mutant(
        "a container has run since its node says so",
        _runs_by_the_nodes_clock,
        "clock-ahead",
        ("restart in place",),
        "kafka",
    ),
    Mutant("who led once goes on for ever", _lease_unasked, "leader-freezes-in-hold"),
    Mutant("positions may be an hour old", _old_positions, "up-then-down-later"),
    Mutant("the write carries no version", _no_fence, "down-4-3", ("freeze",)),
    Mutant("an old judgement is sent", _no_freshness, "down-4-3", ("slow server",)),
    Mutant(
        "nothing is read again before the removal",
        _no_second_look,
        "down-on-a-slow-server",
        ("wish",),
        "kafka",
        survives="the newest StreamApp and the newest look at the group in memory are compared right before the write",
    ),
    Mutant("what the watches told is judged once", _judged_by_watches, "kill-behind"),
    Mutant(
        *("a removal is judged once", lambda: _once(GrantReplicas, CloseBudget), "down-behind", ("slow server",)),
        site="kafka",
        survives="pods and claims are read once more before it, and its write carries the StatefulSet's version",
    ),
    Mutant("a restart is judged once", lambda: _once(RestartPod, CloseBudget), "rollout-behind", ("freeze",), "told"),
    Mutant(
        "an eviction is judged once",
        lambda: _once(Evict),
        "kill-behind",
        ("restart in place",),
        "write",
        survives="who runs where is remembered from live reads, and that a container has ended stays true",
    ),
    Mutant(
        "who runs where is remembered from watches, and an eviction is judged once",
        _placed_by_watches,
        "kill-behind-a-fast-clock",
    ),
    Mutant(
        "one read of the pods tells who runs where",
        _placed_by_one_read,
        "kill-behind-a-fast-clock",
        ("stale read",),
        "read",
    ),
    Mutant(
        "the record is not rewritten at a take-over",
        _no_take_over,
        "down-4-3",
        ("freeze",),
        survives="the first pass of a new process has not read the group, and writes that into the record",
    ),
    Mutant(
        "a capture may be as young as the end",
        _no_margin,
        "kill-of-a-fast-clock",
        ("restart in place",),
        "read",
    ),
    Mutant("whoever has the address of an ended container is evicted", _evict_by_address, "kill"),
    Mutant(
        "copies count though their container is another one",
        _containers_do_not_matter,
        "down-4-3",
        ("restart in place",),
    ),
    Mutant("all leaving pods go at once", _all_at_once, "down-4-2"),
    Mutant("a step need not be closed", _steps_overlap, "down-by-slow-stops"),
    Mutant("identity does not matter", lambda: _without(safety_gates.identity_holds), "other-process-id-above"),
    Mutant(
        "a rebalancing group is good enough",
        lambda: _without(safety_gates.group_is_stable),
        survives="brokers show no subscriptions then, and so no positions",
    ),
    Mutant(
        "facts may be old",
        lambda: _without(safety_gates.facts_are_fresh),
        "brokers-away",
        survives="each look has a deadline of 5 s, and one that failed is the newest one and refuses",
    ),
    Mutant(
        "a policy that deletes claims may still stand",
        lambda: _without(safety_gates.retention_is_in_force),
        "claims-stay-refused",
    ),
    Mutant("a pause is ignored", _pause_ignored, "pause-in-hold"),
    Mutant("growth waits for Kafka", _growth_waits_for_kafka, "raise-without-brokers", ("crash", "error")),
    Mutant("growth waits for a minute after a denial", _growth_waits_after_a_denial, "raise-denied"),
    Mutant("growth waits for every read", _growth_waits_for_reads, "raise-without-pods"),
    Mutant("the record stays after a cancel", _record_stays, "down-up-down"),
    Mutant("a removal is not on record", _step_not_on_record),
    Mutant("the budget stays closed", _budget_stays_closed),
    Mutant("the operator writes the wish", _writes_the_wish),
    Mutant("a claim is deleted with its pod", _claim_goes_too),
    Mutant("a recorded process ID is replaced", _any_process_id, "other-process-id"),
    Mutant("pods are restarted without a judgement", _restarts_unjudged, "rollout"),
    Mutant("several pods are restarted at once", _restarts_together, "template-in-hold"),
)
