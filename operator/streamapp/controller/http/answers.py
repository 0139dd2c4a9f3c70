"""Builds the answers about tasks and findings from the last pass; a reader never slows a pass.

Called by `http.routes`. An answer needs no further reads: it is built from the snapshot of the last pass, in a thread,
one at a time. It is cached for some seconds, so that any number of readers costs one build. Only the leader answers.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import PackageNotFoundError, version

from streamapp.api.http.build import findings_told, group_told, tasks_told, template_facts
from streamapp.api.http.messages import OperatorTold, with_time
from streamapp.controller.agents.keys import KeyFile, NoKeys
from streamapp.controller.apps.apps import Application, Applications
from streamapp.controller.apps.memory import LastPass
from streamapp.controller.leader.clock import seconds_since_boot
from streamapp.controller.settings import Settings
from streamapp.core.doctor.examine import examine
from streamapp.core.doctor.subject import Subject
from streamapp.core.status.task_table import task_table
from streamapp.kube.client.kinds import Key

CACHE_SECONDS = 5.0
"""An answer that is younger is given again, even if a pass was made since."""
CACHE_BUILD_FACTOR = 20
"""And for so many times as long as it took to make: readers cost a twentieth of a processor at most."""
MOST_CACHED = 16
"""Answers; the one of a large application has a megabyte or more."""
MOST_WAITING = 32
"""Readers that wait for a build; more are sent away."""


class Endpoint(Enum):
    """What is asked about an application."""

    TASKS = "tasks"
    FINDINGS = "findings"
    GROUP = "group"
    """Small, and asked for while a user waits for the next reading: never cached."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP status with its body: JSON, or one sentence where it is no success."""

    status: int
    body: bytes

    @property
    def is_json(self) -> bool:
        """Whether it is what was asked for."""
        return self.status == 200


@dataclass(frozen=True, slots=True)
class _CachedBody:
    last: LastPass
    until: float
    body: bytes


class Answers:
    """All that the operator says over HTTP about its work."""

    def __init__(
        self,
        settings: Settings,
        applications: Applications,
        keys: KeyFile,
        leads: Callable[[], bool],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = seconds_since_boot,
    ) -> None:
        self._settings = settings
        self._applications = applications
        self._keys = keys
        self._leads = leads
        self._now = now
        self._monotonic = monotonic
        self._cache: OrderedDict[tuple[Endpoint, Key], _CachedBody] = OrderedDict()
        self._building = asyncio.Lock()
        self._waiting = 0

    def about_operator(self) -> HttpAnswer:
        """The operator itself; every replica answers this."""
        document = OperatorTold(
            release=release(),
            instance=self._settings.instance,
            namespaces=self._settings.namespaces,
            leads=self._leads(),
            agent_key=not isinstance(self._keys.read(), NoKeys),
        )
        return HttpAnswer(200, document.as_json())

    async def about(self, question: Endpoint, key: Key) -> HttpAnswer:
        """The tasks of a StreamApp, or what is wrong with it."""
        if not self._leads():
            return HttpAnswer(503, b"this replica of the operator does not lead: ask the holder of the Lease")
        application = self._applications.find(key)
        last = None if application is None else application.last
        if application is None or last is None:
            if self._applications.contains(key):
                return HttpAnswer(
                    503, f"StreamApp {key}: no pass has been made yet; try again in some seconds".encode()
                )
            return HttpAnswer(
                404, f"StreamApp {key}: this operator does not know it; check which namespaces it watches".encode()
            )
        if question is Endpoint.GROUP:
            return self._about_group(key, application)
        body = self._cached(question, key, last)
        if body is None:
            if self._waiting >= MOST_WAITING:
                return HttpAnswer(503, b"too many requests: try again in some seconds")
            body = await self._build_body(question, key, application, last)
        return HttpAnswer(200, with_time(body, self._now()))

    def _about_group(self, key: Key, application: Application) -> HttpAnswer:
        """The newest reading, which can be newer than the last pass."""
        memory = application.memory
        if not memory.readings:
            return HttpAnswer(503, f"StreamApp {key}: the group was not read yet; try again in some seconds".encode())
        told = group_told(key.namespace, key.name, memory.readings[0], memory.streams_support)
        return HttpAnswer(200, with_time(told.as_json(), self._now()))

    def _cached(self, question: Endpoint, key: Key, last: LastPass) -> bytes | None:
        cached = self._cache.get((question, key))
        if cached is None or cached.last.uid != last.uid:
            return None
        return cached.body if self._monotonic() < cached.until else None

    async def _build_body(self, question: Endpoint, key: Key, application: Application, last: LastPass) -> bytes:
        self._waiting += 1
        try:
            async with self._building:
                body = self._cached(question, key, last)
                if body is not None:
                    return body
                subject, began_at = self._patient(application, last), self._monotonic()
                body = await asyncio.to_thread(_build, question, key, subject)
                ended_at = self._monotonic()
                kept_for = max(CACHE_SECONDS, CACHE_BUILD_FACTOR * (ended_at - began_at))
                self._cache[question, key] = _CachedBody(last, ended_at + kept_for, body)
                self._cache.move_to_end((question, key))
                while len(self._cache) > MOST_CACHED:
                    self._cache.popitem(last=False)
                return body
        finally:
            self._waiting -= 1

    def _patient(self, application: Application, last: LastPass) -> Subject:
        keys = self._keys.read() if last.policy.agent else ()
        return Subject(
            snapshot=last.snapshot,
            policy=last.policy,
            template=template_facts(last.streamapp),
            no_agent_key=keys.why if isinstance(keys, NoKeys) else "",
            failure=application.memory.failure,
        )


def release() -> str:
    """The version of this operator."""
    try:
        return version("streamapp-operator")
    except PackageNotFoundError:
        return "unknown"


def _build(question: Endpoint, key: Key, subject: Subject) -> bytes:
    """Build the body; runs in a thread, on immutable values."""
    as_of = subject.snapshot.now
    if question is Endpoint.TASKS:
        table = task_table(subject.snapshot, subject.policy)
        return tasks_told(key.namespace, key.name, table, as_of=as_of).as_json()
    return findings_told(key.namespace, key.name, examine(subject), as_of=as_of).as_json()
