"""Carries out a plan: each step is one call, in order, and the first failure of the API server ends the pass.

Steps that do not depend on each other go together: one call evicts all members, and process IDs are recorded at the
same time. So a pass does not last longer with every pod. Between the calls the desired replicas are looked at: a raise
ends the plan, and the next pass makes it. Nor does a raise wait for brokers or agents: what they were asked to do goes
on without the pass, and no pass asks for more before it has ended.

Called by `reconcile.reconciler`. It decides nothing and repeats nothing. It never removes a pod on old facts: before a
removal it reads again everything that the decision rests on, and the Lease. The write carries the version that was
judged, and the last action before it is sent is a check of the monotonic clock and of the StreamApp as last received. A
process that does not lead begins no step at all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import structlog

from streamapp.api.names import claim_of
from streamapp.api.objects import drift, manifests
from streamapp.api.validation.parse import StreamApp
from streamapp.controller.agents.access import AgentGateway, moved_since
from streamapp.controller.apps import desired_state
from streamapp.controller.apps.apps import Application
from streamapp.controller.apps.group_poller import GroupPoller
from streamapp.controller.apps.standbys_return import put_back
from streamapp.controller.leader.clock import seconds_since_boot
from streamapp.controller.leader.leadership import ALONE, Leadership
from streamapp.controller.metrics import ERROR, SUCCESS, TOLERATED, Metrics
from streamapp.controller.ports import ApplicationGroup, KafkaStepError, ToleratedError
from streamapp.controller.reconcile import record_fence
from streamapp.controller.reconcile.gather import Gathered, ReplicaFacts
from streamapp.controller.reconcile.owned import OwnedObjects
from streamapp.core.actions import order
from streamapp.core.actions.decision import (
    Announce,
    CapHeartbeats,
    CloseBudget,
    CreateStatefulSet,
    Decision,
    Evict,
    ExpandVolume,
    GrantReplicas,
    KeepClaims,
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
from streamapp.core.evidence.readings import changed_since
from streamapp.core.facts.hold_record import HoldRecord, RecordUnreadable
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Pod
from streamapp.core.reasons import Reason
from streamapp.kube.client.client import FIELD_MANAGER, Json, KubeClient, ahead
from streamapp.kube.client.errors import ConflictError, InvalidError, KubeError, RefusedError, UnauthenticatedError
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
            ExpandVolume: self._expand_volume,
            WriteTemplate: self._write_template,
            KeepClaims: self._keep_claims,
            RestartPod: self._restart,
        }

    async def apply(
        self,
        gathered: Gathered,
        plan: Plan,
        on_step: StepObserver = lambda _step, _is_done: None,
    ) -> None:
        """Make all steps in order; raise the first KubeError or KafkaStepError, or RaisePendingError for a raise.

        What brokers refuse they can refuse for good, where a right is missing. So they are asked nothing more then, and
        no pod is taken or let go; but a template, a record or a larger volume does not wait for them.

        Args:
            gathered: What the plan rests on.
            plan: The steps.
            on_step: Receives each outcome.
        """
        refused: KafkaStepError | None = None
        for steps in order.together(order.growth_first(plan)):
            if gathered.raises.is_received():
                raise RaisePendingError
            is_asked = isinstance(steps[0], Evict | TriggerRebalance | SetStandbys | Announce | CapHeartbeats)
            if refused is not None and (is_asked or order.rests_on_brokers(steps[0])):
                continue
            try:
                await (self._ask if is_asked else self._make)(gathered, steps, on_step)
            except KafkaStepError as error:
                refused = error
        if refused is not None:
            raise refused

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
        record = step.record
        live = facts.live_statefulset or {}
        written = statefulsets.record_as_it_stands(live) if isinstance(record, RecordUnreadable) else record
        with self._observed(facts.key, (step,), on_step), ahead():
            check = _still_desired(facts, received)
            live = await statefulsets.raise_to(self._client, live, step.fence, step.to_replicas, written, check)
        number = record.epoch.lease if isinstance(record, HoldRecord) else 0
        facts.application.memory.note_fence(max(self._leadership.transitions, number))
        facts.application.memory.rejection = None  # it accepts the object again, or did not refuse this one
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
        except ToleratedError as error:
            result = TOLERATED
            log.info("step not made", app=str(key), step=type(steps[0]).__name__, error=str(error))
        finally:
            for step in steps:
                self._metrics.steps.labels(key.namespace, key.name, type(step).__name__, result).inc()
                on_step(step, result == SUCCESS)

    async def fence_hold_record(self, facts: ReplicaFacts, lease: int, now: datetime) -> bool:
        """Write our own epoch into a hold record that another process left; return whether that was done."""
        return await record_fence.fence(self._client, self._leadership, facts, lease, now)

    def owned_objects_stand(self, gathered: Gathered) -> bool:
        """Whether Service and budget are there as the spec wants them, by what the watches told."""
        return self._owned.stand(gathered, _valid(gathered))

    async def ensure_owned_objects(self, gathered: Gathered, decision: Decision, made: Plan) -> None:
        """See that Service and budget are there as the spec wants them and the steps that were made left them."""
        await self._owned.ensure(gathered, _valid(gathered), decision.disruptions, made)

    async def leave_group_as_it_was(self, key: Key, application: Application) -> None:
        """Put the group's standbys back when the StreamApp is gone, and its StatefulSet with the record.

        By memory alone: the record was on the StatefulSet. If the brokers do not answer, the log has what is left.
        """
        raised = application.memory.raised_standbys
        if raised is None or application.watch is None:
            return
        self._leadership.check()
        why = await put_back(application.watch.group, raised)
        if why:
            log.warning("raised standbys are left", app=str(key), before=raised.before, to=raised.to, error=why)

    async def _create(self, gathered: Gathered, step: CreateStatefulSet) -> None:
        manifest = manifests.statefulset(_valid(gathered), self._installation)
        await statefulsets.create(self._client, manifest, step.replicas)

    async def _grant(self, gathered: Gathered, step: GrantReplicas) -> None:
        record, live = step.record, gathered.live.statefulset or {}
        if isinstance(record, RecordUnreadable):
            stands = statefulsets.record_as_it_stands(live)
            await statefulsets.grant(self._client, gathered.key, step.fence, step.to_replicas, stands)
        elif not step.is_removal:
            await statefulsets.raise_to(self._client, live, step.fence, step.to_replicas, record)
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
        await _watch(gathered).trigger_rebalance(step.like_member)

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
        await self._leadership.confirm()  # brokers know no fence, and the clocks of a paused machine stand still
        await _group(gathered).set_standbys(step.replicas, step.instead_of)

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
            raise ToleratedError(f"ordinal {step.ordinal}: {str(error) or 'no answer yet'}") from error

    async def _expand_volume(self, gathered: Gathered, step: ExpandVolume) -> None:
        """Ask for it; whatever comes of that keeps nothing else from being done, and a refusal is told."""
        live, state, memory = _claim(gathered, step.ordinal), _valid(gathered).spec.state, gathered.application.memory
        if state is None:
            return
        try:
            await claims.expand(self._client, live, state.volume_claim_template.resources.requests.storage)
        except KubeError as error:
            if isinstance(error, RefusedError | InvalidError) and not isinstance(error, UnauthenticatedError):
                uid = live["metadata"]["uid"]
                memory.record_refused_expansion(uid, step.to_bytes, error.why, gathered.snapshot.now)
            raise ToleratedError(f"ordinal {step.ordinal}: {error}") from error

    async def _write_template(self, gathered: Gathered, step: WriteTemplate) -> None:
        if gathered.live.statefulset is not None:
            live = gathered.live.statefulset
            manifest = manifests.statefulset(_valid(gathered), self._installation, live)
            if step.reason is Reason.StatefulSetChanged:
                manifest = drift.with_images_of(manifest, live, FIELD_MANAGER)
            try:
                await statefulsets.write_template(self._client, manifest, live)
            except (InvalidError, RefusedError):
                with suppress(KubeError):  # the template's own answer says more
                    await self._retain(gathered, live)
                raise

    async def _keep_claims(self, gathered: Gathered, step: KeepClaims) -> None:
        """Write it if that can be done now; the next pass tries again."""
        if gathered.live.statefulset is None:
            return
        try:
            await self._retain(gathered, gathered.live.statefulset)
        except KubeError as error:
            raise ToleratedError(f"{step.reason.name}: {error}") from error

    async def _retain(self, gathered: Gathered, live: Json) -> None:
        """Whatever keeps the template out, or the operator from writing it, must not cost claims."""
        retained = drift.retained(manifests.retention_fields(gathered.streamapp), live)
        if retained:
            await statefulsets.keep_claims(self._client, live, retained)

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
        if desired_state.of_pods(app) != desired_state.of_pods(before):
            raise ConflictError(what, "the StreamApp has changed since", _TRY_AGAIN)
        if to_replicas is not None and app["spec"].get("replicas", 1) > to_replicas:
            raise ConflictError(what, f"{app['spec']['replicas']} replicas are desired", _TRY_AGAIN)
        if lost := await claims.lost_since(self._client, key, gathered.live.claims):
            raise ConflictError(what, lost, _TRY_AGAIN)
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
        """Return a check that the decision is young enough, by the monotonic clock, and that it is still asked for.

        The StreamApp can change after the last read of it, in a pause or a raise above all. No write to another object
        can be fenced by its version, so a change that this process has not received by then does not stop the write.
        Nor is a pod taken on a group that has changed since.
        """
        limit = gathered.policy.timing.fact_age.total_seconds()

        def check() -> None:
            what, newest = f"judgement of {gathered.key}", gathered.raises.newest()
            if newest is None or desired_state.of_pods(newest) != desired_state.of_pods(gathered.live.app):
                raise ConflictError(what, "the StreamApp has changed since, or is gone", _TRY_AGAIN)
            if changed := changed_since(gathered.snapshot.latest, gathered.application.memory.readings):
                raise ConflictError(what, changed, _TRY_AGAIN)
            if (age := self._monotonic() - gathered.taken_at) >= limit:
                raise ConflictError(what, f"it is {age:.1f} s old, allowed are {limit:g} s", _TRY_AGAIN)

        return check


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


def _still_desired(facts: ReplicaFacts, received: Callable[[], Json | None]) -> Callable[[], None]:
    def check() -> None:
        newest = received()
        if newest is None or desired_state.of_raises(newest) != desired_state.of_raises(facts.resource):
            raise ConflictError(f"raise of {facts.key}", "the StreamApp has changed since, or is gone", _TRY_AGAIN)

    return check


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
