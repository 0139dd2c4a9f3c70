"""One application in three bare JVMs with agents, to which things happen; nothing is measured here.

The third process comes and goes. What an operator would do meanwhile, a group does at the same moment.
"""

import json
import shutil
import time
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError
from lab.matrix import word_load
from lab.matrix.agents import Agents
from lab.matrix.broker import PARTITIONS, Broker
from lab.matrix.learner_progress import all_at_work
from lab.matrix.processes import LOOPBACK, Process, free_ports, started
from streamapp.controller.ports import ApplicationGroup
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.ids import TaskId
from tests.support.group_asked import asked

PROCESSES = 3
LAST = PROCESSES - 1
"""The ordinal of the process that comes and goes."""
NOTICED_SECONDS = 0.5
"""Between the end of a container and what an operator does about it."""
_CAP_MILLIS = 300
_CAP_SECONDS = 60
_LIMIT_SECONDS = 120.0
_POLL_SECONDS = 0.2
_CALM_LOOKS = 5
"""In a row, in which the layout must be as wanted."""
_TASKS = tuple(TaskId(0, partition) for partition in range(PARTITIONS))


@dataclass(frozen=True)
class Kind:
    """How a group is run."""

    name: str
    settings: Mapping[str, str]
    """Environment of the application."""
    is_capped: bool = False
    """Agents shorten heartbeats when an operator would ask for it."""
    has_group_setting: bool = True
    """Standbys are a setting of the group, so that they can be raised."""


KINDS = (
    Kind("classic", {"STREAMS_NUM_STANDBY_REPLICAS": "1"}, has_group_setting=False),
    Kind("streams", {"STREAMS_GROUP_PROTOCOL": "streams"}),
    Kind("capped", {"STREAMS_GROUP_PROTOCOL": "streams"}, is_capped=True),
)


@dataclass
class BenchGroup:
    """The processes of one kind."""

    kind: Kind
    broker: Broker
    folder: Path
    command: tuple[str, ...]
    """What starts the application: `java`, its options, and what it runs."""
    stack: ExitStack
    words: list[list[str]] = field(default_factory=list)
    _running: dict[int, Process] = field(default_factory=dict)
    _starts: int = 0

    def __post_init__(self) -> None:
        """Choose ports; nothing is started yet."""
        self._ports = free_ports(PROCESSES)
        self._agents = Agents(self.kind.name, self._ports)

    @property
    def topics(self) -> tuple[str, str]:
        """Input and output."""
        return f"{self.kind.name}-input", f"{self.kind.name}-output"

    def begin(self, keys: int) -> None:
        """Start all processes on so many keys, with one standby of each task."""
        self.folder.mkdir(parents=True)
        self.broker.create(*self.topics)
        self.words = word_load.preload(self.broker.bootstrap, self.topics[0], keys)
        for ordinal in range(PROCESSES):
            self.start(ordinal)
        self.settle(PROCESSES, standbys=not self.kind.has_group_setting)
        if self.kind.has_group_setting:
            self.set_standbys(1)
            self.settle(PROCESSES)

    def start(self, ordinal: int = LAST, *, anew: bool = False) -> None:
        """Start a process on its volume, or on an empty one."""
        state = self.folder / f"state-{ordinal}"
        if anew:
            shutil.rmtree(state)
        state.mkdir(exist_ok=True)
        self._starts += 1
        environment = {
            **self.kind.settings,
            **self._agents.environment(ordinal),
            "APPLICATION_ID": self.kind.name,
            "INPUT_TOPIC": self.topics[0],
            "OUTPUT_TOPIC": self.topics[1],
            "BOOTSTRAP_SERVERS": self.broker.bootstrap,
            "STATE_DIR": str(state),
            "STREAMS_CLIENT_ID": f"process-{ordinal}",
            "HOSTNAME": "localhost",
        }
        log = self.folder / f"process-{ordinal}-{self._starts}.log"
        name = f"{self.kind.name}: process {ordinal}"
        self._running[ordinal] = self.stack.enter_context(started(name, self.command, environment, log, self.folder))

    def stop(self) -> None:
        """End the last process as a kubelet does, and wait for its end."""
        process = self._running.pop(LAST)
        process.terminate()
        process.wait(_LIMIT_SECONDS)

    def kill(self) -> None:
        """End it as a node that fails does."""
        process = self._running.pop(LAST)
        process.running.kill()
        process.wait(_LIMIT_SECONDS)

    def evict(self) -> None:
        """Evict the members of the last process, as an operator does when it sees that the container has ended."""
        time.sleep(NOTICED_SECONDS)
        self.cap()

        async def evicted(one: ApplicationGroup) -> None:
            group = (await one.describe()).group
            members = group.members if isinstance(group, GroupDescription) else ()
            mine = [one for one in members if one.client_id.startswith(f"process-{LAST}")]
            await one.evict([MemberKey(member.id, member.instance_id) for member in mine], "a benchmark")

        asked(self.broker.bootstrap, self.kind.name, evicted)

    def set_standbys(self, replicas: int) -> None:
        """Set the standbys of the group."""
        asked(self.broker.bootstrap, self.kind.name, lambda one: one.set_standbys(replicas))

    def cap(self) -> None:
        """Ask the agents for short heartbeats, where this kind has them; one that is not up yet has none."""
        if not self.kind.is_capped:
            return
        for ordinal in self._running:
            request = urllib.request.Request(  # the scheme is the next line's
                f"http://{LOOPBACK}:{self._ports[ordinal]}/streamapp/v1/heartbeat",
                data=json.dumps({"capMillis": _CAP_MILLIS, "ttlSeconds": _CAP_SECONDS}).encode(),
                headers={"Authorization": f"Bearer {self._agents.token}", "Content-Type": "application/json"},
                method="PUT",
            )
            try:
                urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=2).close()
            except OSError:
                continue

    def settle(self, processes: int, *, standbys: bool = True) -> None:
        """Wait until every task runs on its process, and has its standby, in several looks.

        Groups of both protocols end with an even share, so a task whose move has not begun is waited for. Meanwhile
        short heartbeats are asked for.
        """
        until, calm, why = time.monotonic() + _LIMIT_SECONDS, 0, "tasks or standbys are missing"
        while calm < _CALM_LOOKS:
            for process in self._running.values():
                process.require_life()
            if time.monotonic() > until:
                raise LabError(f"{self.kind.name}: {processes} processes do not settle", why, f"read {self.folder}")
            try:
                calm = calm + 1 if self._is_settled(processes, standbys=standbys) else 0
            except LabError as error:  # an agent that begins answers 503
                calm, why = 0, error.why
            if not calm:
                self.cap()
            time.sleep(_POLL_SECONDS)

    def _is_settled(self, processes: int, *, standbys: bool) -> bool:
        reports = [self._agents.reply(ordinal).report for ordinal in sorted(self._running)]
        copies = [task for report in reports for task in report.tasks or () if not task.is_active]
        wanted = PARTITIONS if standbys else 0
        shares = {sum(task.is_active for task in report.tasks or ()) for report in reports}
        is_even = shares == {PARTITIONS // processes}
        return len(reports) == processes and is_even and all_at_work(reports, _TASKS) and len(copies) == wanted
