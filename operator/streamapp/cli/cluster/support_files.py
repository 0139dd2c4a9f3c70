"""Reads all that belongs to one StreamApp and to the operator, for the support bundle.

A file that cannot be read does not fail the bundle: its reason takes its place. Secrets and ConfigMaps are never read.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import yaml

from streamapp.api.http.messages import API_PORT, PORT, findings_path, history_path, tasks_path
from streamapp.cli.cluster.operator_pods import OPERATOR_SELECTOR, lease_of
from streamapp.cli.text.redaction import Redaction
from streamapp.cli.text.sanitize import plain
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, NotFoundError
from streamapp.kube.client.kinds import (
    AUTOSCALERS,
    BUDGETS,
    CLAIMS,
    EVENTS,
    LEASES,
    PODS,
    STATEFUL_SETS,
    Key,
    Kind,
)

Json = dict[str, Any]
_LABEL = re.compile(r'[{,](namespace|name)="([^"]*)"')
LOG_LINES = 5_000
"""Of each container, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportFile:
    """One file of the bundle."""

    path: str
    """Within the bundle."""
    text: str
    """Without secrets; empty where it could not be read."""
    removed: int = 0
    """Values that were removed."""
    unread: str = ""
    """Why it could not be read; empty where it was."""


def text_file(path: str, text: str) -> SupportFile:
    """A file of text, without what looks like a secret."""
    redaction = Redaction()
    text = redaction.text(text)
    return SupportFile(path=path, text=text, removed=redaction.removed)


def object_file(path: str, document: Any) -> SupportFile:
    """A file of one object or several, without what could be a secret."""
    redaction = Redaction()
    document = redaction.document(document)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    return SupportFile(path=path, text=text, removed=redaction.removed)


def json_file(path: str, document: Any) -> SupportFile:
    """A file of an answer for programs, without what could be a secret."""
    redaction = Redaction()
    text = json.dumps(redaction.document(document), indent=2, ensure_ascii=False) + "\n"
    return SupportFile(path=path, text=text, removed=redaction.removed)


@dataclass(frozen=True, slots=True)
class SupportReader:
    """Reads the files of one StreamApp."""

    client: KubeClient
    key: Key
    operator_namespace: str

    async def of_objects(self) -> list[SupportFile]:
        """The objects of the StreamApp, and what Kubernetes says of them."""
        name, selector = self.key.name, self.key.selector
        return [
            await self._objects("statefulset.yaml", STATEFUL_SETS, is_wanted=lambda one: _name(one) == name),
            await self._objects("pods.yaml", PODS, selector),
            await self._objects("volume-claims.yaml", CLAIMS, selector),
            await self._objects("disruption-budgets.yaml", BUDGETS, selector),
            await self._objects("autoscalers.yaml", AUTOSCALERS),
            await self._objects("events.yaml", EVENTS, is_wanted=lambda one: _regards(one, name)),
        ]

    async def of_application_logs(self) -> list[SupportFile]:
        """The logs of the application's containers: they can hold whatever the application writes."""
        try:
            pods = await self.client.list(PODS, self.key.namespace, self.key.selector)
        except KubeError as error:
            return [_unread("logs", error)]
        return [file for pod in pods for file in await self._logs(pod, "logs")]

    async def of_operator(self) -> list[SupportFile]:
        """The operator's pods, Lease, logs and answers."""
        namespace = self.operator_namespace
        try:
            pods = await self.client.list(PODS, namespace, OPERATOR_SELECTOR)
        except KubeError as error:
            return [_unread("operator/pods.yaml", error)]
        lease = lease_of(pods)
        files = [
            object_file("operator/pods.yaml", pods),
            await self._objects(
                "operator/lease.yaml", LEASES, is_wanted=lambda one: _name(one) == lease, namespace=namespace
            ),
        ]
        for pod in pods:
            files += await self._logs(pod, "operator")
            files.append(await self._metrics(_name(pod)))
        return files

    async def of_answers(self, leader: str) -> list[SupportFile]:
        """What the operator that leads answers about the StreamApp.

        Args:
            leader: The name of its pod.
        """
        paths = {
            "operator/findings.json": findings_path(self.key.namespace, self.key.name),
            "operator/tasks.json": tasks_path(self.key.namespace, self.key.name),
            "operator/history.json": history_path(self.key.namespace, self.key.name, None),
        }
        return [await self._answer(path, leader, question) for path, question in paths.items()]

    async def _objects(
        self,
        path: str,
        kind: Kind,
        selector: str = "",
        *,
        is_wanted: Callable[[Json], bool] = lambda _: True,
        namespace: str = "",
    ) -> SupportFile:
        async def read() -> SupportFile:
            found = await self.client.list(kind, namespace or self.key.namespace, selector)
            return object_file(path, [one for one in found if is_wanted(one)])

        return await _read(path, read)

    async def _logs(self, pod: Json, folder: str) -> list[SupportFile]:
        """The logs of all containers of a pod, and of the run before where there was one."""
        status, spec = pod.get("status", {}), pod["spec"]
        statuses = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
        restarted = {one["name"] for one in statuses if one.get("restartCount")}
        files = []
        for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
            name = str(container["name"])
            runs = (False, True) if name in restarted else (False,)
            files += [await self._log(pod, name, folder, previous=previous) for previous in runs]
        return files

    async def _log(self, pod: Json, container: str, folder: str, *, previous: bool) -> SupportFile:
        path = f"{folder}/{_name(pod)}.{container}{'.previous' if previous else ''}.log"

        async def read() -> SupportFile:
            namespace = pod["metadata"]["namespace"]
            log = await self.client.log(namespace, _name(pod), container, lines=LOG_LINES, previous=previous)
            return text_file(path, log.decode(errors="replace"))

        return await _read(path, read)

    async def _metrics(self, pod: str) -> SupportFile:
        path = f"operator/{pod}.metrics"

        async def read() -> SupportFile:
            try:
                metrics = await self.client.forwarded(self.operator_namespace, pod, API_PORT, "/metrics")
            except NotFoundError:  # an operator of 0.1
                metrics = await self.client.forwarded(self.operator_namespace, pod, PORT, "/metrics")
            own = (line for line in metrics.decode(errors="replace").splitlines() if self._is_own(line))
            return text_file(path, "".join(f"{line}\n" for line in own))

        return await _read(path, read)

    def _is_own(self, line: str) -> bool:
        """Whether a line of the metrics is of this StreamApp, or of none."""
        labels = dict(_LABEL.findall(line))
        own = {"namespace": self.key.namespace, "name": self.key.name}
        return all(labels.get(label, value) == value for label, value in own.items())

    async def _answer(self, path: str, leader: str, question: str) -> SupportFile:
        async def read() -> SupportFile:
            answer = await self.client.forwarded(self.operator_namespace, leader, API_PORT, question)
            return json_file(path, json.loads(answer))

        return await _read(path, read)


async def _read(path: str, read: Callable[[], Awaitable[SupportFile]]) -> SupportFile:
    try:
        return await read()
    except KubeError as error:
        return _unread(path, error)
    except ValueError as error:
        return SupportFile(path=path, text="", unread=f"the answer is not readable: {plain(str(error))}")


def _unread(path: str, error: KubeError) -> SupportFile:
    return SupportFile(path=path, text="", unread=plain(error.why))


def _name(one: Json) -> str:
    return str(one["metadata"]["name"])


def _regards(event: Json, name: str) -> bool:
    """Whether an Event is about an object of the StreamApp, by its name: `counter`, `counter-0`, `state-counter-0`."""
    regarding = str((event.get("regarding") or {}).get("name", ""))
    return regarding == name or regarding.startswith(f"{name}-") or f"-{name}-" in regarding
