"""Takes away what a run made, and nothing else: objects with its random name or its label, each by its UID.

It goes on after a failure, and gives what is left.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from streamapp.api.names import selector_of
from streamapp.cli.conformance.manifests import RUN_LABEL, remove_pod
from streamapp.cli.conformance.trial import CLAIM, OWN_KINDS, TRIES, Trial
from streamapp.kube.client.errors import ConflictError, KubeError, NotFoundError
from streamapp.kube.client.kinds import CLAIMS, PODS, Kind

GONE_WITHIN = timedelta(minutes=2)
GRACE_SECONDS = 5
"""These pods are not measured any more."""

Json = dict[str, Any]


@dataclass(slots=True)
class Cleanup:
    """One run that ends."""

    trial: Trial
    left: list[str] = field(default_factory=list)
    """What could not be removed, and why."""

    async def run(self) -> tuple[str, ...]:
        """Remove everything; give what is left."""
        self.trial.timeout = GONE_WITHIN
        self.trial.say("cleans up")
        for kind in OWN_KINDS:
            await self._try(f"{kind.name} {self.trial.setup.name}", self._remove_named(kind))
        await self._try("pods", self._remove_pods())
        await self._try("volume claims", self._remove_claims())
        topics = f"topics {self.trial.setup.topics} and group {self.trial.setup.name} at the brokers"
        await self._try(topics, self._remove_topics())
        return tuple(self.left)

    async def _try(self, what: str, act: Awaitable[str]) -> None:
        try:
            why = await act
        except KubeError as error:
            why = error.why
        if why:
            self.left.append(f"{what}: {why}")

    async def _remove_named(self, kind: Kind) -> str:
        """Delete the object with the name of the run: the name was free before, and is random."""
        found = await self.trial.client.find(kind, self.trial.setup.namespace, self.trial.setup.name)
        if found is not None:
            await self._delete(kind, found)
        return ""

    async def _remove_pods(self) -> str:
        label = f"{RUN_LABEL}={self.trial.setup.name}"
        for pod in await self._listed(PODS, label):
            await self._delete(PODS, pod)
        gone = await self.trial.until("the pods are gone", lambda: self._are_gone(PODS, label))
        return "" if gone is not None else "they do not end"

    async def _remove_claims(self) -> str:
        prefix = f"{CLAIM}-{self.trial.setup.name}-"
        for claim in await self._listed(CLAIMS, selector_of(self.trial.setup.name)):
            if claim["metadata"]["name"].startswith(prefix):
                await self._delete(CLAIMS, claim)
        return ""

    async def _remove_topics(self) -> str:
        trial, phases = self.trial, [""]
        pod = remove_pod(trial.setup)
        name = pod["metadata"]["name"]
        await trial.make(PODS, pod)

        async def is_over() -> bool:
            found = await trial.pod(name)
            phases[:] = ["" if found is None else str(found.get("status", {}).get("phase", ""))]
            return phases[0] in {"Succeeded", "Failed"}

        await trial.until("the topics are gone", is_over)
        why = ""
        if phases[0] != "Succeeded":
            log = await self._log_of(name) if phases[0] == "Failed" else ""
            why = log or await trial.why_pod(name)
        found = await trial.pod(name)
        if found is not None:
            await self._delete(PODS, found)
        return why

    async def _log_of(self, name: str) -> str:
        log = await self.trial.client.log(self.trial.setup.namespace, name, "remove", lines=1)
        return log.decode(errors="replace").strip()

    async def _listed(self, kind: Kind, selector: str) -> list[Json]:
        return await self.trial.client.list(kind, self.trial.setup.namespace, selector)

    async def _are_gone(self, kind: Kind, selector: str) -> bool:
        return not await self._listed(kind, selector)

    async def _delete(self, kind: Kind, found: Json) -> None:
        """Delete this object in whatever version it is by then; one that is gone is fine."""
        namespace, name, uid = (found["metadata"][part] for part in ("namespace", "name", "uid"))
        for left in reversed(range(TRIES)):
            version = found["metadata"]["resourceVersion"]
            try:
                if kind is PODS:
                    await self.trial.client.end_pod(found, grace_seconds=GRACE_SECONDS)
                else:
                    await self.trial.client.delete(kind, namespace, name, uid=uid, resource_version=version)
            except NotFoundError:
                return
            except ConflictError:
                now = await self.trial.client.find(kind, namespace, name)
                if now is None or now["metadata"]["uid"] != uid:
                    return
                if not left:
                    raise
                found = now
                continue
            return
