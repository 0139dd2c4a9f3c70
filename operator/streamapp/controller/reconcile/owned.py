"""The objects beside the StatefulSet, as a pass wants them: the headless Service and the PodDisruptionBudget.

Called by `apply`: after a plan, and for the steps that change what the budget allows.
"""

from collections.abc import Callable

from streamapp.api.objects import drift, manifests
from streamapp.api.validation.parse import StreamApp
from streamapp.controller.reconcile.gather import Gathered
from streamapp.core.actions.decision import CloseBudget, Disruptions, OpenBudget, Plan
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Budget
from streamapp.kube.client.client import Check, Json, KubeClient
from streamapp.kube.objects import owned_objects

COMPARE_OWNED_SECONDS = 60.0
"""Between two comparisons of Service and budget with what they must be; no watch reports their changes."""


class OwnedObjects:
    """Compares and writes them."""

    def __init__(
        self, client: KubeClient, installation: manifests.Installation, monotonic: Callable[[], float]
    ) -> None:
        self._client = client
        self._installation = installation
        self._monotonic = monotonic

    def stand(self, gathered: Gathered, streamapp: StreamApp) -> bool:
        """Whether Service and budget are there as the spec wants them, by what the watches told.

        If not, the next live pass compares them with what is there. What another writer has changed since they were
        last compared waits until that is a while ago: else two writers that disagree would never rest.
        """
        memory, workload = gathered.application.memory, gathered.snapshot.workload
        is_written = memory.owned_objects_written == (streamapp.metadata.generation, gathered.live.budget is None)
        if is_written and self._monotonic() - memory.owned_objects_compared_at < COMPARE_OWNED_SECONDS:
            return True
        service = manifests.service(streamapp, self._installation)
        budget = self._budget(gathered, workload.budget, workload.evictable, workload.budget_lease)
        return (
            is_written
            and drift.covers(gathered.live.service or {}, service)
            and drift.covers(gathered.live.budget or {}, budget)
        )

    async def ensure(self, gathered: Gathered, streamapp: StreamApp, disruptions: Disruptions, plan: Plan) -> None:
        """See that Service and budget are there as the spec wants them and the plan left them."""
        memory = gathered.application.memory
        desired_state = (streamapp.metadata.generation, gathered.live.budget is None)
        is_written, now = memory.owned_objects_written == desired_state, self._monotonic()
        if is_written and now - memory.owned_objects_compared_at < COMPARE_OWNED_SECONDS:
            return
        service = manifests.service(streamapp, self._installation)
        await owned_objects.apply_service(self._client, service, streamapp.metadata.uid, if_changed=is_written)
        if disruptions.follows_coverage:
            await self._restore_closed(gathered, plan)
        else:
            await self._restore(gathered, plan, is_written=is_written)
        memory.owned_objects_written = (streamapp.metadata.generation, False)
        memory.owned_objects_compared_at = now

    async def close_budget(self, gathered: Gathered, step: CloseBudget) -> None:
        """Have the budget allow nothing."""
        lease = gathered.snapshot.lease if step.follows_coverage else None
        await self._write(gathered, self._budget(gathered, Budget.CLOSED, None, lease))

    async def open_budget(self, gathered: Gathered, step: OpenBudget, last_check: Check | None = None) -> None:
        """Have it allow one pod, or the one that is named; on exactly the version that was read if coverage says so."""
        allows = Budget.OPEN if step.evictable is None else Budget.OPEN_FOR_ONE
        if step.judged_at is None:
            await self._write(gathered, self._budget(gathered, allows, None, None))
            return
        manifest = self._budget(gathered, allows, step.evictable, gathered.snapshot.lease)
        live = gathered.live.budget or {"metadata": {}}
        fence = {name: live["metadata"].get(name, "") for name in ("uid", "resourceVersion")}
        await self._write(gathered, {**manifest, "metadata": {**manifest["metadata"], **fence}}, last_check)

    async def _restore(self, gathered: Gathered, plan: Plan, *, is_written: bool) -> None:
        made = [isinstance(step, CloseBudget) for step in plan if isinstance(step, CloseBudget | OpenBudget)]
        is_closed = made[-1] if made else gathered.snapshot.workload.budget is Budget.CLOSED
        wanted = self._budget(gathered, Budget.CLOSED if is_closed else Budget.OPEN, None, None)
        if made or not is_written or not drift.covers(gathered.live.budget or {}, wanted):
            await self._write(gathered, wanted)

    async def _restore_closed(self, gathered: Gathered, plan: Plan) -> None:
        """Make the budget, or undo what another writer changed: closed, so that the next pass judges if it may open."""
        workload = gathered.snapshot.workload
        if any(isinstance(step, CloseBudget | OpenBudget) for step in plan):
            return  # it was just written whole
        wanted = self._budget(gathered, workload.budget, workload.evictable, workload.budget_lease)
        if gathered.live.budget is None or not drift.covers(gathered.live.budget, wanted):
            await self._write(gathered, self._budget(gathered, Budget.CLOSED, None, gathered.snapshot.lease))

    def _budget(self, gathered: Gathered, allows: Budget, evictable: Ordinal | None, lease: int | None) -> Json:
        return manifests.disruption_budget(
            gathered.streamapp, self._installation, allows=allows, evictable=evictable, lease=lease
        )

    async def _write(self, gathered: Gathered, manifest: Json, last_check: Check | None = None) -> None:
        uid = gathered.streamapp.metadata.uid
        await owned_objects.apply_budget(self._client, manifest, gathered.live.budget, uid, last_check)
