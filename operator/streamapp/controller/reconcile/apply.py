"""Carries out a plan: each step is one call, in order, and the first failure ends the pass.

Steps that do not depend on each other go together: one call evicts all members, and process IDs are recorded at the
same time. So a pass does not last longer with every pod. Between the calls the desired replicas are looked at: a raise
ends the plan, and the next pass makes it. Nor does a raise wait for brokers or agents: what they were asked to do goes
on without the pass, and no pass asks for more before it has ended.

Called by `reconcile.reconciler`. It decides nothing and repeats nothing. It never removes a pod on old facts: before a
removal it reads again everything that the decision rests on, and the Lease. The write carries the version that was
judged, and the last action before it is sent is a check of the monotonic clock. A process that does not lead begins no
step at all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any

import structlog

from streamapp.api.names import HOLD, HOLD_RECORD, MIGRATION, OVERRIDE, RESTART, claim_of
from streamapp.api.objects import drift, manifests
from streamapp.api.validation.parse import StreamApp
from streamapp.controller.agents.access import AgentGateway, moved_since
from streamapp.controller.apps.apps import Application
from streamapp.controller.apps.group_poller import GroupPoller
from streamapp.controller.leader.clock import seconds_since_boot
from streamapp.controller.leader.leadership import ALONE, Leadership
from streamapp.controller.metrics import ERROR, SUCCESS, Metrics
from streamapp.controller.ports import ApplicationGroup, KafkaStepError
from streamapp.controller.reconcile.gather import Gathered, ReplicaFacts
from streamapp.controller.reconcile.owned import OwnedObjects
from streamapp.core.actions import standbys
from streamapp.core.actions.decision import (
    Announce,
    CapHeartbeats,
    CloseBudget,
    CreateStatefulSet,
    Decision,
    Evict,
    Fence,
    GrantReplicas,
    OpenBudget,
    Plan,
    RecordProcessId,
    RecordState,
    RestartPod,
    SetStandbys,
    Step,
    TriggerRebalance,
    WriteHoldRecord,
    WriteTemplate,
)
from streamapp.core.evidence.agent_views import views
from streamapp.core.facts.group import GroupDescription, StandbySetting
from streamapp.core.facts.hold_record import HoldRecord, RaisedStandbys, RecordUnreadable
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Pod
from streamapp.core.reasons import Reason
from streamapp.kube.client.client import FIELD_MANAGER, Json, KubeClient, ahead
from streamapp.kube.client.errors import ConflictError, KubeError
from streamapp.kube.client.kinds import PODS, STREAM_APPS, Key
from streamapp.kube.objects import claims, from_json, pods, statefulsets

log = structlog.get_logger()

RECORD_STATE_SECONDS = 2.0
"""So long a pass waits for what only predictions read: the members of the removed pods are to be evicted soon."""
_TRY_AGAIN = "it is read again and judged anew"
StepObserver = Callable[[Step, bool], None]
"""Receives each step that was tried, and whether it was done."""


class RaisePendingError(Exception):
    """Desired replicas rose above the current ones: what is left of the pass is dropped, and the next one begins."""


class Applier:
    """Makes plans, one at a time per application."""

    def __init__(
        self,
        client: KubeClient,
        installation: manifests.Installation,
        metrics: Metrics,
        monotonic: Callable[[], float] = seconds_since_boot,
        agents: AgentGateway | None = None,
        *,
        leadership: Leadership = ALONE,
    ) -> None:
        self._client = client
        self._agents = agents
        self._leadership = leadership
        self._installation = installation
        self._metrics = metrics
        self._monotonic = monotonic
        self._owned = OwnedObjects(client, installation, monotonic)
        self._makers: dict[type[Any], Callable[[Gathered, Any], Awaitable[None]]] = {
            CreateStatefulSet: self._create,
            GrantReplicas: self._grant,
            WriteHoldRecord: self._record,
            CloseBudget: self._owned.close_budget,
            OpenBudget: self._open_budget,
            TriggerRebalance: self._trigger_rebalance,
            Announce: self._announce,
            CapHeartbeats: self._cap_heartbeats,
            SetStandbys: self._set_standbys,
            RecordProcessId: self._record_process_id,
            RecordState: self._record_state,
            WriteTemplate: self._write_template,
            RestartPod: self._restart,
        }

    async def apply(
        self,
        gathered: Gathered,
        plan: Plan,
        on_step: StepObserver = lambda _step, _is_done: None,
    ) -> None:
        """Make all steps in order; raise the first KubeError or KafkaStepError, or RaisePendingError for a raise.

        Args:
            gathered: What the plan rests on.
            plan: The steps.
            on_step: Receives each outcome.
        """
        for steps in _together(_growth_first(plan)):
            if gathered.raises.is_received():
                raise RaisePendingError
            if isinstance(steps[0], Evict | TriggerRebalance | SetStandbys | Announce | CapHeartbeats):
                await self._ask(gathered, steps, on_step)
            else:
                await self._make(gathered, steps, on_step)

    async def _ask(self, gathered: Gathered, steps: Plan, on_step: StepObserver) -> None:
        """Ask brokers or agents to do these steps, and wait for it until a raise is received.

        A request that was sent is not called off: half a rebalance would leave a probe member in the group.
        """
        application, what = gathered.application, f"{type(steps[0]).__name__} of {gathered.key}"
        if application.request is not None and not application.request.done():
            raise ConflictError(what, "what was asked before a raise has not ended", _TRY_AGAIN)
        request = application.request = asyncio.ensure_future(self._answered(gathered, steps, on_step))
        try:
            is_answered = await gathered.raises.comes_after(request)
        except asyncio.CancelledError:
            request.cancel()
            raise
        if is_answered:
            return request.result()
        request.add_done_callback(lambda ended: _tell_failure(what, ended))
        raise RaisePendingError

    async def _answered(self, gathered: Gathered, steps: Plan, on_step: StepObserver) -> None:
        if isinstance(steps[0], Evict):
            with self._observed(gathered.key, steps, on_step):
                await self._evict(gathered, steps)
        else:
            await self._make(gathered, steps, on_step)

    async def raise_replicas(
        self, facts: ReplicaFacts, step: GrantReplicas, on_step: StepObserver, received: Callable[[], Json | None]
    ) -> Json:
        """Make a raise; give the StatefulSet as it is then. Raises KubeError.

        Its record has our own epoch, and the StatefulSet another version: the raise is a fence too.

        Args:
            facts: What it rests on.
            step: The raise.
            on_step: Receives the outcome.
            received: Gives the StreamApp as last received, asked right before the request is sent: a raise may wait
                for its turn, and the user may want something else by then.
        """
        record: HoldRecord | str | None
        if isinstance(step.record, RecordUnreadable):
            record = (facts.live_statefulset or {})["metadata"]["annotations"][HOLD_RECORD]
        else:
            record = step.record
        with self._observed(facts.key, (step,), on_step), ahead():
            check = _still_desired(facts, received)
            live = await statefulsets.grant(self._client, facts.key, step.fence, step.to_replicas, record, check)
        facts.application.memory.is_fenced = True
        return live

    async def _make(self, gathered: Gathered, steps: Plan, on_step: StepObserver) -> None:
        """Make these steps at the same time; raise the first error when all have ended."""

        async def make(step: Step) -> None:
            with self._observed(gathered.key, (step,), on_step):
                await self._makers[type(step)](gathered, step)

        for outcome in await asyncio.gather(*map(make, steps), return_exceptions=True):
            if outcome is not None:
                raise outcome

    @contextmanager
    def _observed(self, key: Key, steps: Plan, on_step: StepObserver) -> Iterator[None]:
        """Have the outcome of the steps of this block counted and observed."""
        result = ERROR
        for step in steps:
            self._metrics.steps.labels(key.namespace, key.name, type(step).__name__, ERROR)  # begins with 0
        try:
            self._leadership.check()  # also for brokers and agents, who know nothing of a Lease
            yield
            result = SUCCESS
        finally:
            for step in steps:
                self._metrics.steps.labels(key.namespace, key.name, type(step).__name__, result).inc()
                on_step(step, result == SUCCESS)

    async def fence_hold_record(self, facts: ReplicaFacts, lease: int, now: datetime) -> bool:
        """Write our own epoch into a hold record that another process left; return whether that was done.

        From then on a removal which that process had prepared finds another version of the object and fails.
        """
        memory, statefulset = facts.application.memory, facts.statefulset
        if memory.is_fenced:
            return False
        record = None if statefulset is None or not statefulset.is_ours else statefulset.record
        if statefulset is not None and isinstance(record, HoldRecord):
            ours = replace(record.dated_until(now), epoch=record.epoch.next(lease, now))
            fence = Fence(statefulset.uid, statefulset.resource_version)
            await statefulsets.grant(self._client, facts.key, fence, statefulset.replicas, ours)
        memory.is_fenced = True
        return isinstance(record, HoldRecord)

    def owned_objects_stand(self, gathered: Gathered) -> bool:
        """Whether Service and budget are there as the spec wants them, by what the watches told."""
        return self._owned.stand(gathered, _valid(gathered))

    async def ensure_owned_objects(self, gathered: Gathered, decision: Decision) -> None:
        """See that Service and budget are there as the spec wants them and the plan left them."""
        await self._owned.ensure(gathered, _valid(gathered), decision.disruptions, decision.plan)

    async def leave_group_as_it_was(self, key: Key, application: Application) -> None:
        """Put the group's standbys back when the StreamApp is gone, and its StatefulSet with the record.

        By memory alone: the record was on the StatefulSet. If the brokers do not answer, the log has what is left.
        """
        raised = application.memory.raised_standbys
        if raised is None or application.watch is None:
            return
        self._leadership.check()
        group, why = application.watch.group, "the group's setting cannot be read"
        described = (await group.describe()).group
        if isinstance(described, GroupDescription) and described.streams is not None:
            setting = described.streams.standbys
            if isinstance(setting, StandbySetting):
                why = await _written_back(group, raised) if standbys.is_ours(raised, setting) else ""
        if why:
            log.warning("raised standbys are left", app=str(key), before=raised.before, to=raised.to, error=why)

    async def _create(self, gathered: Gathered, step: CreateStatefulSet) -> None:
        await statefulsets.create(
            self._client, manifests.statefulset(_valid(gathered), self._installation), step.replicas
        )

    async def _grant(self, gathered: Gathered, step: GrantReplicas) -> None:
        record = step.record
        if isinstance(record, RecordUnreadable):
            live = gathered.live.statefulset or {}
            text = live["metadata"]["annotations"][HOLD_RECORD]
            await statefulsets.grant(self._client, gathered.key, step.fence, step.to_replicas, text)
        elif not step.is_removal:
            await statefulsets.grant(self._client, gathered.key, step.fence, step.to_replicas, record)
        else:
            await self._check_again(gathered, step.to_replicas)
            check = self._freshness(gathered)
            await statefulsets.grant(self._client, gathered.key, step.fence, step.to_replicas, record, check)
            removed = step.from_replicas - step.to_replicas
            self._metrics.removed.labels(gathered.key.namespace, gathered.key.name, step.reason.name).inc(removed)

    async def _record(self, gathered: Gathered, step: WriteHoldRecord) -> None:
        statefulset = gathered.snapshot.workload.statefulset
        if statefulset is not None:
            await statefulsets.grant(self._client, gathered.key, step.fence, statefulset.replicas, step.record)

    async def _open_budget(self, gathered: Gathered, step: OpenBudget) -> None:
        """Where it rests on coverage, everything is read again first, as before a removal."""
        if step.judged_at is None:
            return await self._owned.open_budget(gathered, step)
        await self._check_again(gathered, None)
        return await self._owned.open_budget(gathered, step, self._freshness(gathered))

    async def _trigger_rebalance(self, gathered: Gathered, step: TriggerRebalance) -> None:
        watch = _watch(gathered)
        await watch.group.trigger_rebalance(step.like_member)
        watch.expect_rebalance()

    async def _announce(self, gathered: Gathered, step: Announce) -> None:
        """Send the announcement; the next report shows whether an agent has it, and the next pass repeats it."""
        if self._agents is not None:
            pods = gathered.snapshot.workload.pods
            await self._agents.announce(gathered.key, _valid(gathered), pods, step)

    async def _cap_heartbeats(self, gathered: Gathered, step: CapHeartbeats) -> None:
        """Ask the agents; whether one has done so changes nothing but how long tasks wait."""
        if self._agents is not None:
            await self._agents.cap_heartbeats(gathered.key, _valid(gathered), gathered.snapshot.workload.pods, step)

    async def _set_standbys(self, gathered: Gathered, step: SetStandbys) -> None:
        await _group(gathered).set_standbys(step.replicas)

    async def _evict(self, gathered: Gathered, steps: Plan) -> None:
        """Evict all members in one request, however many containers they were in."""
        evictions = [step for step in steps if isinstance(step, Evict)]
        members = tuple(dict.fromkeys(member for step in evictions for member in step.members))
        reasons = dict.fromkeys(step.reason.name for step in evictions)
        await _group(gathered).evict(members, ", ".join(reasons))

    async def _record_process_id(self, gathered: Gathered, step: RecordProcessId) -> None:
        live = _claim(gathered, step.ordinal)
        await claims.record_process_id(self._client, _valid(gathered), live, step.ordinal, step.process_id)

    async def _record_state(self, gathered: Gathered, step: RecordState) -> None:
        """Write it if that can be done now: a prediction without it is only less exact."""
        try:
            live = _claim(gathered, step.ordinal)
            async with asyncio.timeout(RECORD_STATE_SECONDS):
                await claims.record_state(self._client, _valid(gathered), live, step.ordinal, step.state)
        except (KubeError, TimeoutError) as error:
            log.info("state of a removed pod not recorded", ordinal=step.ordinal, error=str(error) or "no answer yet")

    async def _write_template(self, gathered: Gathered, step: WriteTemplate) -> None:
        if gathered.live.statefulset is not None:
            live = gathered.live.statefulset
            manifest = manifests.statefulset(_valid(gathered), self._installation, live)
            if step.reason is Reason.StatefulSetChanged:
                manifest = drift.with_images_of(manifest, live, FIELD_MANAGER)
            await statefulsets.write_template(self._client, manifest, live)

    async def _restart(self, gathered: Gathered, step: RestartPod) -> None:
        live = next((pod for pod in gathered.live.pods if pod["metadata"]["uid"] == step.pod_uid), None)
        if live is None:
            raise ConflictError(f"delete pod of ordinal {step.ordinal}", "it is gone", _TRY_AGAIN)
        await self._check_again(gathered, None)
        await pods.restart(self._client, live, self._freshness(gathered))

    async def _check_again(self, gathered: Gathered, to_replicas: int | None) -> None:
        """Read again what the decision rests on; the write itself carries the version of the StatefulSet."""
        key, before = gathered.key, gathered.live.app
        what = f"judgement of {key}"
        await self._check_agents(gathered, what)
        app = await self._client.get(STREAM_APPS, key.namespace, key.name)
        if _desired(app) != _desired(before) or _asked_for(app) != _asked_for(before):
            raise ConflictError(what, "the StreamApp has changed since", _TRY_AGAIN)
        if to_replicas is not None and app["spec"].get("replicas", 1) > to_replicas:
            raise ConflictError(what, f"{app['spec']['replicas']} replicas are desired", _TRY_AGAIN)
        live = await self._client.list(PODS, key.namespace, key.selector)
        statefulset = gathered.snapshot.workload.statefulset
        container = str(_valid(gathered).spec.application_container["name"])
        now = from_json.pods(live, key.name, None if statefulset is None else statefulset.uid, container)
        if set(map(_run, now)) != set(map(_run, gathered.snapshot.workload.pods)):
            raise ConflictError(what, "pods have come, gone or restarted since", _TRY_AGAIN)
        # Last, since a pod's deletion carries nothing that the next leader has written.
        await self._leadership.confirm()

    async def _check_agents(self, gathered: Gathered, what: str) -> None:
        """Poll the agents again if the decision rests on their reports; this must come before the read of the pods."""
        if self._agents is None or not gathered.policy.agent:
            return
        agent_views = views(gathered.snapshot, gathered.policy.timing)
        if not agent_views:
            return  # then it rests on the group, as without agents
        snapshot = gathered.snapshot
        asking = asyncio.ensure_future(
            self._agents.read_reports(gathered.key, _valid(gathered), snapshot.workload.pods, snapshot.task_set)
        )
        try:
            if not await gathered.raises.comes_after(asking):
                raise RaisePendingError
        finally:
            asking.cancel()
        now = asking.result()
        moved = moved_since(agent_views[0].reports, now)
        if moved:
            raise ConflictError(what, moved, _TRY_AGAIN)

    def _freshness(self, gathered: Gathered) -> Callable[[], None]:
        """Return a check that the decision is young enough, by the monotonic clock, and no raise was received since."""
        limit = gathered.policy.timing.fact_age.total_seconds()

        def check() -> None:
            if gathered.raises.is_received():
                raise ConflictError(f"judgement of {gathered.key}", "more replicas are desired since", _TRY_AGAIN)
            age = self._monotonic() - gathered.taken_at
            if age >= limit:
                raise ConflictError(
                    f"judgement of {gathered.key}", f"it is {age:.1f} s old, allowed are {limit:g} s", _TRY_AGAIN
                )

        return check


async def _written_back(group: ApplicationGroup, raised: RaisedStandbys) -> str:
    """Write the old value; give why the brokers did not take it."""
    try:
        await group.set_standbys(raised.before)
    except KafkaStepError as error:
        return str(error)
    return ""


def _tell_failure(what: str, ended: "asyncio.Future[None]") -> None:
    """Log why something failed that no pass waits for any more; the next pass sees by its facts that it is not done."""
    error = None if ended.cancelled() else ended.exception()
    if error is not None:
        log.warning("step failed after its pass", step=what, error=str(error))


def _claim(gathered: Gathered, ordinal: Ordinal) -> Json:
    """The claim of an ordinal as it was read; ConflictError if there was none."""
    state = _valid(gathered).spec.state
    name = claim_of("" if state is None else state.claim_name, gathered.key.name, ordinal)
    live = next((claim for claim in gathered.live.claims if claim["metadata"]["name"] == name), None)
    if live is None:
        raise ConflictError(f"annotate persistentvolumeclaim {name}", "it is gone", _TRY_AGAIN)
    return live


def _growth_first(plan: Plan) -> tuple[Step, ...]:
    """Put a raise in front: it must not wait for a broker that one of the other steps would ask."""
    raises = tuple(step for step in plan if isinstance(step, GrantReplicas) and not step.is_removal)
    return (*raises, *(step for step in plan if step not in raises))


def _together(plan: Plan) -> Iterator[Plan]:
    """Group the steps that are made with one call, or at the same time; all others are alone, in their order."""
    independent = (Evict, RecordProcessId, RecordState)
    numbered = enumerate(plan)
    for _, steps in groupby(numbered, lambda one: type(one[1]) if isinstance(one[1], independent) else one[0]):
        yield tuple(step for _, step in steps)


def _still_desired(facts: ReplicaFacts, received: Callable[[], Json | None]) -> Callable[[], None]:
    def check() -> None:
        newest = received()
        if newest is None or _desired(newest) != _desired(facts.resource):
            raise ConflictError(f"raise of {facts.key}", "the StreamApp has changed since, or is gone", _TRY_AGAIN)

    return check


def _desired(app: Json) -> tuple[object, ...]:
    metadata = app["metadata"]
    annotations = metadata.get("annotations", {})
    return (
        metadata["uid"],
        metadata["generation"],
        metadata.get("deletionTimestamp"),
        annotations.get(HOLD),
        annotations.get(OVERRIDE),
    )


def _asked_for(app: Json) -> tuple[object, ...]:
    """The restarts that the user asks for, and whether all pods stop for a migration; no raise depends on them."""
    annotations = app["metadata"].get("annotations", {})
    return annotations.get(RESTART, ""), MIGRATION in annotations


def _run(pod: Pod) -> tuple[object, ...]:
    return (pod.uid, pod.terminating, pod.container.id, pod.container.running_since)


def _valid(gathered: Gathered) -> StreamApp:
    if not isinstance(gathered.streamapp, StreamApp):
        raise TypeError(f"{gathered.key}: a step was planned for an invalid spec")  # core never does
    return gathered.streamapp


def _watch(gathered: Gathered) -> GroupPoller:
    if gathered.application.watch is None:
        raise KafkaStepError(f"{gathered.key}: its group is not watched")
    return gathered.application.watch


def _group(gathered: Gathered) -> ApplicationGroup:
    return _watch(gathered).group
