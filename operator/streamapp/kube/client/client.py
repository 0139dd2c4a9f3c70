"""Sends requests to the API server: plain dicts both ways, a deadline on each, a limit on how many at once.

Made once by the process, used by the other modules of this package. It retries nothing: a reconcile that failed is run
again as a whole, from fresh reads. The operator's writes are server-side applies, so that fields of others are left
alone; those of the command line are merge patches.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp
from kubernetes.aio.client.api_client import ApiClient, RequestSerialized
from kubernetes.aio.client.configuration import Configuration

from streamapp.kube.client import port_forward
from streamapp.kube.client.connections import Connections
from streamapp.kube.client.errors import NotFoundError, UnavailableError, of_status
from streamapp.kube.client.impersonation import Impersonation
from streamapp.kube.client.kinds import PODS, Kind

Json = dict[str, Any]

FIELD_MANAGER = "streamapp-operator"
"""Owns everything the operator writes but the fields of the other two managers."""
GRANTING_MANAGER = "streamapp-operator-granting"
"""Owns `spec.replicas` and the hold record of the StatefulSet, so that no other write can touch them by accident."""
EXPANDING_MANAGER = "streamapp-operator-expanding"
"""Owns the size of volume claims that were expanded; whoever applied it with the labels would give it up with them."""

AHEAD = 10
"""Requests at a time that wait for no other: those of raises."""
BOOKMARK_SECONDS = 60
"""An API server sends a bookmark about so often where there is nothing else to tell."""
PAGE = 500
"""Objects per answer of a list."""

Observer = Callable[[str, str, int], None]
"""Called for every answer: method, plural of the kind, HTTP status (0 if there was no answer)."""

Check = Callable[[], None]
"""Raises what keeps a request from being sent."""

Seen = Callable[[Kind, Json], None]
"""Receives an object as it is now."""

_last_checks: ContextVar[tuple[Check, ...]] = ContextVar("last_checks", default=())
"""Of the request that is being made in this context."""
_is_ahead: ContextVar[bool] = ContextVar("is_ahead", default=False)


@contextmanager
def ahead() -> Iterator[None]:
    """Have the requests of this block wait for no turn of others."""
    token = _is_ahead.set(True)
    try:
        yield
    finally:
        _is_ahead.reset(token)


class KubeClient:
    """The API server, with the rights of one identity."""

    seen: Seen = staticmethod(lambda *_: None)
    """Told of every whole object that was read or written by its name."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        deadline_seconds: float,
        at_once: int = 50,
        observe: Observer = lambda *_: None,
        user_agent: str = FIELD_MANAGER,
        may_write: Check = lambda: None,
        act_as: Impersonation | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            configuration: Where the API server is, and who asks.
            deadline_seconds: For each request as a whole.
            at_once: So many requests at a time, the others wait.
            observe: Called for every answer.
            user_agent: Who asks, for audit logs.
            may_write: Run right before anything but a read is sent, as the `last_check` of every write.
            act_as: Whom every request is made as; None: as the identity itself.
        """
        configuration.trace_configs = [_checked_when_connected(), *([] if act_as is None else [_acting_as(act_as)])]
        self._api = ApiClient(configuration)
        self._api.rest_client = Connections(configuration)
        self._may_write = may_write
        self._api.user_agent = user_agent
        self._deadline_seconds = deadline_seconds
        self._turns = asyncio.Semaphore(at_once)
        self._turns_ahead = asyncio.Semaphore(AHEAD)
        self._observe = observe

    async def close(self) -> None:
        """Drop every connection."""
        await self._api.close()

    async def get(self, kind: Kind, namespace: str, name: str, subresource: str | None = None) -> Json:
        """Read one object, from etcd and not from a cache; NotFoundError if there is none."""
        found = await self._ask("GET", kind, kind.path(namespace, name, subresource))
        if subresource is None:
            self.seen(kind, found)
        return found

    async def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Read one object, or give None if there is none."""
        try:
            return await self.get(kind, namespace, name)
        except NotFoundError:
            return None

    async def list(self, kind: Kind, namespace: str | None, selector: str = "") -> list[Json]:
        """Read all objects that match, page by page, each with its kind and version."""
        return (await self.listing(kind, namespace, selector=selector)).objects

    async def listing(
        self, kind: Kind, namespace: str | None, *, selector: str = "", name: str | None = None, fields: str = ""
    ) -> "ObjectList":
        """Read the same, or the one of this name, with the version of the whole from which a watch can go on.

        `fields` is a field selector, for kinds that have more of them than the name.
        """
        objects: list[Json] = []
        version = ""
        async for page in self.pages(kind, namespace, selector=selector, name=name, fields=fields):
            objects += page.objects
            version = page.version
        return ObjectList(objects, version)

    async def pages(
        self, kind: Kind, namespace: str | None, *, selector: str = "", name: str | None = None, fields: str = ""
    ) -> "AsyncGenerator[ObjectList, None]":
        """Give the same page by page, each with the version of the whole: much need not be held at a time."""
        query = {"limit": str(PAGE)}
        query |= {"labelSelector": selector} if selector else {}
        query |= {"fieldSelector": fields} if fields else _only(name)
        while True:
            page = await self._ask("GET", kind, kind.path(namespace), query)
            objects = [{"apiVersion": kind.api_version, "kind": kind.name, **item} for item in page["items"]]
            yield ObjectList(objects, page["metadata"].get("resourceVersion", ""))
            if not page["metadata"].get("continue"):
                return
            query["continue"] = page["metadata"]["continue"]

    async def watch(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        version: str,
        seconds: int,
        name: str | None = None,
        selector: str = "",
    ) -> AsyncGenerator[Json, None]:
        """Give the events since a version, bookmarks too, until the API server ends the watch after so many seconds.

        ExpiredError where the version is too old to go on from: then list again. A connection that has become silent
        is UnavailableError: when the time has passed, or a minute that brought not even a bookmark.
        """
        path = kind.path(namespace)
        query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        query |= {"timeoutSeconds": str(seconds), **_only(name)}
        query |= {"labelSelector": selector} if selector else {}
        with _told_apart(f"WATCH {path}", self._deadline_seconds):
            parameters = await self._parameters("GET", path, query, None, "application/json")
            silence = min(seconds, BOOKMARK_SECONDS) + self._deadline_seconds
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._deadline_seconds, sock_read=silence)
            answer = await self._api.call_api(*parameters, _request_timeout=timeout)
            self._observe("WATCH", kind.plural, answer.status)
            try:
                if answer.status != 200:
                    pause = _retry_after(answer.response.headers.get("Retry-After", ""))
                    raise of_status(answer.status, f"WATCH {path}", _message(await answer.read()), pause)
                async for line in _lines(answer.response.content):
                    yield _event(line, path)
            finally:
                answer.response.close()

    async def heartbeat(self, kind: Kind, namespace: str | None) -> None:
        """See that a kind can be listed at all; the cheapest read there is."""
        await self._ask("GET", kind, kind.path(namespace), {"limit": "1"})

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server knows a kind (discovery)."""
        prefix = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        try:
            resources = await self._ask("GET", kind, prefix)
        except NotFoundError:
            return False
        return any(resource["name"] == kind.plural for resource in resources["resources"])

    async def versions(self, group: str) -> tuple[str, ...]:
        """Name the versions of a group that the API server serves (discovery); empty where it does not know it."""
        try:
            group_document = await self._ask("GET", Kind(group, "", "", ""), f"/apis/{quote(group, safe='')}")
        except NotFoundError:
            return ()
        return tuple(str(one["version"]) for one in group_document["versions"])

    async def forwarded(self, namespace: str, pod: str, port: int, path: str) -> bytes:
        """Read something that a pod serves over HTTP, on its loopback address too; what the pod refuses is an error."""
        what, query = f"GET {path} of pod {namespace}/{pod}", {"ports": str(port)}
        door = PODS.path(namespace, pod, "portforward")
        status = 0
        try:
            with _told_apart(what, self._deadline_seconds):
                async with self._turns, asyncio.timeout(self._deadline_seconds):
                    status, body = await self._exchanged(door, query, path)
        except port_forward.ForwardError as error:
            raise UnavailableError(what, str(error), "see that the pod runs and serves this port") from error
        except aiohttp.WSServerHandshakeError as error:
            await self._send("GET", PODS, door, query)  # the same request without an upgrade is told why
            raise UnavailableError(what, error.message, "see that the API server serves port-forwards") from error
        finally:
            self._observe("GET", PODS.plural, status)
        if status != 200:
            raise of_status(status, what, _message(body))
        return body

    async def _exchanged(self, door: str, query: Mapping[str, str], path: str) -> tuple[int, bytes]:
        _, url, headers, *_ = await self._parameters("GET", door, query, None, "application/json")
        headers = {**headers, "Accept": "*/*"}  # with JSON alone, the API server refuses to connect
        rest = self._api.rest_client
        if rest.pool_manager is None:
            rest.pool_manager = rest._create_pool_manager()  # noqa: SLF001 (as its first request does)
        async with rest.pool_manager.ws_connect(
            url,
            headers=headers,
            protocols=(port_forward.SUBPROTOCOL,),
            proxy=rest.proxy,
            proxy_headers=rest.proxy_headers,
            server_hostname=self._api.configuration.tls_server_name,
        ) as socket:
            return await port_forward.exchange(socket, path)

    async def log(self, namespace: str, pod: str, container: str, *, lines: int, previous: bool = False) -> bytes:
        """Read the newest lines that a container wrote, in its present run or in the one before."""
        query = {"container": container, "tailLines": str(lines), "previous": str(previous).lower()}
        return await self._send("GET", PODS, PODS.path(namespace, pod, "log"), query)

    async def apply(
        self,
        kind: Kind,
        body: Json,
        *,
        subresource: str | None = None,
        manager: str = FIELD_MANAGER,
        force: bool = True,
        dry_run: bool = False,
        last_check: Check | None = None,
    ) -> Json:
        """Bring the fields of `body`, and only those, to what it says; give the whole object as it is then.

        Without `force`, a field that another manager set to another value is a ConflictError. `last_check` is run when
        everything else is done, the connection included, and the next thing is to send; what it raises keeps the
        request from being sent.

        `metadata.uid` and `metadata.resourceVersion` in the body are preconditions: ConflictError where another object
        or another version is there, and then nothing is written. Equal content writes nothing.
        """
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        query = {"fieldManager": manager, "force": "true" if force else "false", "fieldValidation": "Strict"}
        query |= {"dryRun": "All"} if dry_run else {}
        whole = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        path = kind.path(namespace, name, subresource)
        content_type = "application/apply-patch+yaml"
        made = await self._ask("PATCH", kind, path, query, whole, content_type=content_type, last_check=last_check)
        if not dry_run:
            self.seen(kind, made)
        return made

    async def merge(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Json,
        *,
        manager: str,
        subresource: str | None = None,
        last_check: Check | None = None,
    ) -> Json:
        """Lay fields over an object as a JSON merge patch; give the whole object as it is then.

        A field that is None is removed, and whose field it was does not matter. `last_check` as in `apply`.
        `metadata.resourceVersion` in the patch is a precondition: ConflictError where another version is there, and
        then nothing is written. Through the subresource `scale` the patch and the answer are a Scale.
        """
        query = {"fieldManager": manager, "fieldValidation": "Strict"}
        path, content_type = kind.path(namespace, name, subresource), "application/merge-patch+json"
        made = await self._ask("PATCH", kind, path, query, patch, content_type=content_type, last_check=last_check)
        if subresource is None:
            self.seen(kind, made)
        return made

    async def create(self, kind: Kind, body: Json, *, manager: str = FIELD_MANAGER, dry_run: bool = False) -> Json:
        """Create an object, in no namespace where its metadata name none; ConflictError if it is there already.

        With `dry_run` the API server checks everything, admission included, and keeps nothing.
        """
        whole = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        query = {"fieldManager": manager} | ({"dryRun": "All"} if dry_run else {})
        return await self._ask("POST", kind, kind.path(body["metadata"].get("namespace")), query, whole)

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        uid: str,
        resource_version: str,
        orphan: bool = False,
        last_check: Check | None = None,
    ) -> None:
        """Delete exactly this version of this object; `last_check` as in `apply`.

        With `orphan`, the objects that it owns stay and lose their owner. It is gone only after all of them have.
        """
        options: Json = {"preconditions": {"uid": uid, "resourceVersion": resource_version}}
        options |= {"propagationPolicy": "Orphan"} if orphan else {}
        await self._ask("DELETE", kind, kind.path(namespace, name), body=options, last_check=last_check)

    async def end_pod(self, pod: Json, *, grace_seconds: int) -> None:
        """Delete exactly this version of a pod, with so much grace in place of its own."""
        metadata = pod["metadata"]
        preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        options = {"preconditions": preconditions, "gracePeriodSeconds": grace_seconds}
        await self._ask("DELETE", PODS, PODS.path(metadata["namespace"], metadata["name"]), body=options)

    async def _ask(
        self,
        method: str,
        kind: Kind,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        *,
        content_type: str = "application/json",
        last_check: Check | None = None,
    ) -> Json:
        answer = await self._send(method, kind, path, query, body, content_type=content_type, last_check=last_check)
        try:
            document: Json = json.loads(answer)
        except ValueError as error:
            what, why = f"{method} {path}", f"the answer is no JSON: {error}"
            raise UnavailableError(what, why, "see what answers in place of the API server, such as a proxy") from error
        return document

    async def _send(
        self,
        method: str,
        kind: Kind,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        *,
        content_type: str = "application/json",
        last_check: Check | None = None,
    ) -> bytes:
        what = f"{method} {path}"
        status, pause = 0, 0.0
        try:
            with _told_apart(what, self._deadline_seconds):
                turns = self._turns_ahead if _is_ahead.get() else self._turns
                async with turns, asyncio.timeout(self._deadline_seconds):
                    parameters = await self._parameters(method, path, query, body, content_type)
                    with self._checked(method, last_check):
                        response = await self._api.call_api(*parameters, _request_timeout=self._deadline_seconds)
                    status, text = response.status, bytes(await response.read())
                    pause = _retry_after(response.response.headers.get("Retry-After", ""))
        finally:
            self._observe(method, kind.plural, status)
        if 200 <= status < 300:
            return text
        raise of_status(status, what, _message(text), pause)

    @contextmanager
    def _checked(self, method: str, last_check: Check | None) -> Iterator[None]:
        """Have what must be so looked at when the request of this block is sent."""
        own = () if method == "GET" else (self._may_write,)
        token = _last_checks.set(own if last_check is None else (*own, last_check))
        try:
            yield
        finally:
            _last_checks.reset(token)

    async def _parameters(
        self, method: str, path: str, query: Mapping[str, str] | None, body: Json | None, content_type: str
    ) -> RequestSerialized:
        """Build a request, with a token that is fresh."""
        parameters: RequestSerialized = await self._api.param_serialize(
            method=method,
            resource_path=path,
            query_params=list((query or {}).items()),
            header_params={"Content-Type": content_type, "Accept": "application/json"},
            body=body,
            auth_settings=["BearerToken"],
        )
        return parameters


@dataclass(frozen=True, slots=True)
class ObjectList:
    """Objects, and the version of the whole."""

    objects: list[Json]
    version: str


def _only(name: str | None) -> dict[str, str]:
    return {} if name is None else {"fieldSelector": f"metadata.name={name}"}


def _checked_when_connected() -> aiohttp.TraceConfig:
    """Have the last checks run when there is a connection: connecting can take as long as the deadline."""

    async def check(*_: object) -> None:
        for one in _last_checks.get():
            one()

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(check)
    trace.on_connection_reuseconn.append(check)
    return trace


def _acting_as(whom: Impersonation) -> aiohttp.TraceConfig:
    """Add the headers to each request; the library's own default headers cannot repeat a name."""

    async def add(_session: object, _context: object, request: aiohttp.TraceRequestStartParams) -> None:
        request.headers.extend(whom.headers())

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(add)
    return trace


@contextmanager
def _told_apart(what: str, deadline_seconds: float) -> Iterator[None]:
    """Turn what the connection raises into our own errors."""
    next_step = "see that the API server can be reached"
    try:
        yield
    except TimeoutError as error:
        raise UnavailableError(what, f"no answer within {deadline_seconds:g} s", next_step) from error
    except aiohttp.WSServerHandshakeError:
        raise
    except (aiohttp.ClientError, OSError) as error:
        raise UnavailableError(what, str(error) or type(error).__name__, next_step) from error


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes, None]:
    """Cut a stream at its line ends; aiohttp's own way refuses lines of more than 128 KiB, and objects have more."""
    begun: list[bytes] = []
    async for part in content.iter_any():
        first, *others = part.split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun)
            begun = [other]
    if any(begun):
        yield b"".join(begun)


def _event(line: bytes, path: str) -> Json:
    """Parse one line of a watch; an error event is raised."""
    try:
        event: Json = json.loads(line)
    except ValueError as error:
        raise UnavailableError(f"WATCH {path}", "the connection ended within an event", "it is tried again") from error
    if event["type"] == "ERROR":
        status = event["object"]
        raise of_status(status.get("code", 0), f"WATCH {path}", status.get("message", "no message"))
    return event


def _retry_after(text: str) -> float:
    """How many seconds the API server wants to be left alone, at most a minute; dates are not used by any."""
    return min(60.0, float(text)) if text.isascii() and text.isdecimal() else 0.0


def _message(text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.decode(errors="replace")[:200] or "no message"
