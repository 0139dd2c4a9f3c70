"""Lists the ResourceQuotas of a namespace while a pod is missing there, to say whether they are why.

Called by `reconcile.gather`. The answer is reported to users and decides nothing, so a pass never fails or waits long
for it: if the right is missing or the API server is slow, nothing is said of quotas.
"""

import asyncio
from collections.abc import Callable, Sequence

from streamapp.core.facts.workload import QuotaLimit, Workload
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.errors import KubeError, NotFoundError, RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import QUOTAS
from streamapp.kube.objects import quotas

REFRESH_SECONDS = 5.0
"""Between two lists of one namespace, however many of its applications miss pods."""
RETRY_SECONDS = 600.0
"""Between two lists if the right is missing."""
DEADLINE_SECONDS = 2.0


class QuotaLister:
    """Knows those of the namespaces in which pods were missing lately."""

    def __init__(self, client: KubeClient, monotonic: Callable[[], float]) -> None:
        self._client = client
        self._monotonic = monotonic
        self._listings: dict[str, Sequence[Json]] = {}
        self._due_at: dict[str, float] = {}

    async def limits(self, namespace: str, workload: Workload, statefulset: Json | None) -> tuple[QuotaLimit, ...]:
        """Give the quotas that keep the next missing pod from being made; empty where no pod is missing."""
        if statefulset is None or workload.first_missing is None:
            return ()
        await self._refresh(namespace)
        has_claims = workload.volume(workload.first_missing) is not None
        try:
            return quotas.limits(self._listings.get(namespace, ()), statefulset, has_claims=has_claims)
        except ValueError:
            return ()  # a quantity that this release cannot read

    async def _refresh(self, namespace: str) -> None:
        now = self._monotonic()
        if now < self._due_at.get(namespace, now):
            return
        self._due_at[namespace] = now + REFRESH_SECONDS
        # Until the answer is there the last one stands, for passes of other applications of the namespace.
        listing: Sequence[Json] = ()
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                listing = await self._client.list(QUOTAS, namespace)
        except (RefusedError, NotFoundError) as error:
            if not isinstance(error, UnauthenticatedError):
                self._due_at[namespace] = now + RETRY_SECONDS
        except (KubeError, TimeoutError):
            pass
        self._listings[namespace] = listing
