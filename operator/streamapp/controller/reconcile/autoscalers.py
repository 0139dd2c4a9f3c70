"""Lists the HorizontalPodAutoscalers of every namespace with a StreamApp, or of all at once, at most every half minute.

Called by `reconcile.gather`. The list is reported to users and decides nothing, so a pass never fails or waits long for
it: if a right is missing, the API server is slow, or the kind does not exist, the autoscalers are unknown.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streamapp.api.managed_fields import writers_of_replicas
from streamapp.core.facts.autoscalers import NOT_LISTED, Autoscaler, ReplicaWriters, ReplicaWritersUnknown
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.errors import KubeError, NotFoundError, RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import AUTOSCALERS, Key
from streamapp.kube.objects.autoscalers import by_target

REFRESH_SECONDS = 30.0
"""Between two lists of one namespace, whatever the number of its StreamApps."""
RETRY_SECONDS = 600.0
"""Between two lists if the right is missing, or the API server does not know the kind."""
MAX_AGE_SECONDS = 300.0
"""An older list is no longer reported, if the API server has not answered since."""
DEADLINE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class _NamespaceListing:
    """What one namespace answered, or why nothing is known."""

    at: float
    by_target: Mapping[str, Mapping[str, tuple[Autoscaler, ...]]] | ReplicaWritersUnknown
    """By namespace and the name of the target."""


class AutoscalerLister:
    """Knows those of all namespaces."""

    def __init__(self, client: KubeClient, monotonic: Callable[[], float]) -> None:
        self._client = client
        self._monotonic = monotonic
        self.is_clusterwide = False
        """Whether one list of all namespaces serves all applications."""
        self._listings: dict[str | None, _NamespaceListing] = {}
        self._due_at: dict[str | None, float] = {}

    async def refresh(self, namespace: str) -> None:
        """List them, if it is time to; raises nothing.

        Whoever comes while somebody else is asking goes on with what is known.
        """
        now, scope = self._monotonic(), self._scope(namespace)
        if now < self._due_at.get(scope, now):
            return
        self._due_at[scope] = now + REFRESH_SECONDS
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                live = await self._client.list(AUTOSCALERS, scope)
        except (KubeError, TimeoutError) as error:
            self._failed(scope, now, error)
        else:
            by_namespace: dict[str, list[Json]] = defaultdict(list)
            for one in live:
                by_namespace[one["metadata"]["namespace"]].append(one)
            found = {name: by_target(several) for name, several in by_namespace.items()}
            self._listings[scope] = _NamespaceListing(now, found)

    def _scope(self, namespace: str) -> str | None:
        return None if self.is_clusterwide else namespace

    def _failed(self, namespace: str | None, now: float, error: KubeError | TimeoutError) -> None:
        """Note why there is no list; a token that is not taken just now says nothing of rights."""
        if isinstance(error, RefusedError | NotFoundError) and not isinstance(error, UnauthenticatedError):
            self._due_at[namespace] = now + RETRY_SECONDS
            self._listings[namespace] = _NamespaceListing(now, ReplicaWritersUnknown(_why(error, namespace)))
            return
        previous = self._listings.get(namespace)
        if previous is None or now - previous.at > MAX_AGE_SECONDS:
            cause = str(error) or f"no answer within {DEADLINE_SECONDS:g} s"
            self._listings[namespace] = _NamespaceListing(
                now, ReplicaWritersUnknown(f"They could not be listed: {cause}")
            )

    def replica_writers(self, key: Key, resource: Json) -> ReplicaWriters | ReplicaWritersUnknown:
        """Give who drives the StreamApp `resource`, as far as is known now."""
        listed = self._listings.get(self._scope(key.namespace))
        if listed is None:
            return NOT_LISTED
        if isinstance(listed.by_target, ReplicaWritersUnknown):
            return listed.by_target
        return ReplicaWriters(
            autoscalers=listed.by_target.get(key.namespace, {}).get(key.name, ()),
            other_writers=writers_of_replicas(resource),
        )


def _why(error: KubeError, namespace: str | None) -> str:
    kind = f"{AUTOSCALERS.plural} of {AUTOSCALERS.api_version}"
    where = "all namespaces" if namespace is None else f"namespace {namespace}"
    if isinstance(error, NotFoundError):
        return f"The API server does not know {kind}"
    return f"The operator lacks the right to list {kind} in {where}"
