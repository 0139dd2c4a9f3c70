"""Every call that an operator makes goes through here: it takes its time, it is counted, and it may go wrong.

`DirectClient` is the product's own client, but for the socket; `ApplicationGroup` is the port to the brokers. What goes
wrong at which call is the story's to say; what can is listed in `docs/proofs.md`.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from streamapp.api.names import HOLD_RECORD
from streamapp.controller.apps.memory import Memory
from streamapp.controller.ports import KafkaStepError, Poll
from streamapp.core.facts.agent_reports import AgentReply
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import GroupUnreadable, StandbySetting, StandbySettingUnread
from streamapp.core.facts.ids import ProcessId, TopicPartition
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable, PartitionEnd, Unknown
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.core.reasons import Reason
from streamapp.kube.client.client import Check, Json
from streamapp.kube.client.errors import UnavailableError, of_status
from streamapp.kube.client.kinds import Key
from tests.kube.object_store import ObjectStore, Request
from tests.kube.store_client import StoreClient, answer_of
from tests.prove.broker import described, ends_of, tasks_of
from tests.prove.fleet.requests import app_of
from tests.prove.group import Group, Run
from tests.prove.story import Disturbance

T = TypeVar("T")
API_DEADLINE = 10.0
KAFKA_DEADLINE = 5.0


class Witness(Protocol):
    """Whoever sees what an operator is told and what it does, and judges it by the truth."""

    visited: set[str]
    """What the story came past, in the words of `coverage`."""

    def read(self, process: "Process", request: Request, answer: Json, *, is_stale: bool) -> None:
        """The API server gave this answer."""

    def looked(self, process: "Process", group: Group) -> None:
        """The group was described."""

    def evicts(self, process: "Process", group: Group, members: Sequence[MemberKey]) -> None:
        """LeaveGroup arrives at the brokers."""

    def rebalances(self, process: "Process", group: Group) -> None:
        """A probe member joins, so that the group rebalances."""

    def announces(self, process: "Process", group: Group, named: frozenset[ProcessId], to: Sequence[Run]) -> None:
        """Agents in these containers are told who leaves."""


class Process(Protocol):
    """What a call needs to know of the operator's process that makes it."""

    number: int
    installation: int
    """Of which operator it is; 0 where there is one."""

    @property
    def is_open(self) -> bool:
        """Whether it runs; else it stands still, or is dead."""

    async def turn(self) -> None:
        """Return when this process may go on; never, where it is dead."""

    def memory(self, key: Key) -> Memory | None:
        """What it remembers of a StreamApp; None: it does not know it."""

    def die(self) -> None:
        """It ends here and now."""

    def freeze(self, how: str, thaw_after: float) -> None:
        """It stops here and now, and goes on later."""


@dataclass(slots=True)
class Switchboard:
    """Counts the calls of all processes and finds what is to go wrong with each."""

    happen: Callable[[str, int], bool]
    """Lets something happen in the world; False: it is nothing that the world knows, so it is for the call."""
    chance: random.Random
    plan: dict[tuple[str, int], list[Disturbance]] = field(default_factory=dict)
    arrival: Callable[[str, int], None] = lambda *_: None
    """Told of each call before anything is made of it."""
    counts: Counter[str] = field(default_factory=Counter)
    hits: Counter[str] = field(default_factory=Counter)
    """What really happened, by what."""
    writer: "Process | None" = None
    """Whose write is being made right now."""
    froze_as_it_sent: bool = False
    """That process stood still between its last check and the sending of this write."""
    disturbed: Callable[[], None] = lambda: None
    struck: Callable[[Disturbance], None] = lambda _: None
    """Told of each disturbance that took place."""
    chronicle: list[str] = field(default_factory=list)
    """What happened, in words; kept only where somebody will read it."""
    is_told: bool = False
    now: Callable[[], float] = lambda: 0.0
    kinds_away: set[str] = field(default_factory=set)
    """Plurals that the API server does not let anybody read at present."""
    namespaces_away: dict[str, int] = field(default_factory=dict)
    """With which status the API server refuses every request about a namespace; 0: it does not answer."""
    about: Key | None = None
    """The StreamApp that the present call is about, where there are several."""
    has_several: bool = False
    """Whether there are several StreamApps, so that what is told names them."""
    slowness: float = 0.0
    """Seconds that the API server takes beside the usual."""
    slow_until: dict[float, float] = field(default_factory=dict)
    """Until when the API server took so many seconds, by the seconds."""

    sending: Callable[[Process, Request | None], None] = lambda *_: None
    """Told of what a replica sends to the API server, or without a request to brokers or agents, as it leaves."""
    sent: list[Callable[[Process, Request], None]] = field(default_factory=list)
    """Told of a write as it leaves: no check of its sender comes after that."""
    heard: list[Callable[[Process, Group, Sequence[AgentReply]], None]] = field(default_factory=list)
    """Told of what agents have answered to a process."""
    next_term: Callable[[], int] = lambda: 0
    """Gives the number of the next process that leads, where several replicas stand for a Lease."""
    frozen: Callable[[str], None] = lambda _: None
    """Told that a replica stands still."""
    refuses_template: int = 0
    """With which status the API server refuses every write of a template; 0: it takes them."""
    refuses_retention: int = 0
    """The same of every write of a retention policy."""
    denies: int = 0
    """The same of every write of a StatefulSet."""
    writing: Callable[[Request], None] = lambda _: None
    """Told of a write right before the API server makes it."""

    def leaves(self, process: Process, request: Request) -> None:
        """A request is sent."""
        for tell in self.sent if request.is_write else ():
            tell(process, request)

    def slowest(self, since: float) -> float:
        """The most that one answer took beside the usual, now or at any time from then on."""
        past = (seconds for seconds, until in self.slow_until.items() if until >= since)
        return max((self.slowness, *past))

    def be_slow(self, seconds: float) -> None:
        """Have every answer take so long from now on; 0 for the usual time."""
        if self.slowness:
            self.slow_until[self.slowness] = self.now()
        self.slowness = seconds

    def refuses(self, request: Request) -> int:
        """With which status the API server refuses a request for what it would write; 0: it takes it."""
        if self.denies and request.is_write and request.plural == "statefulsets":
            return self.denies
        spec = request.body.get("spec", {})
        is_of_retention = "persistentVolumeClaimRetentionPolicy" in spec
        return ("template" in spec and self.refuses_template) or (is_of_retention and self.refuses_retention)

    def arrive(self, site: str) -> list[Disturbance]:
        """Count a call; let happen what happens at it in the world; give what is to become of the call itself."""
        self.counts[site] += 1
        self.arrival(site, self.counts[site])
        return [one for one in self.plan.get((site, self.counts[site]), ()) if not self.strikes(one)]

    def soon(self, site: str) -> None:
        """Something was done that something else may follow, as soon as whoever did it has finished."""
        asyncio.get_running_loop().call_soon(self.arrive, site)

    def strikes(self, one: Disturbance) -> bool:
        """Let it happen, if it is something in the world."""
        known = self.happen(one.what, one.which)
        self.hit(one)
        return known

    def hit(self, one: Disturbance) -> None:
        """Count it."""
        self.tell(f"*** {one}")
        self.hits[one.what] += 1
        self.struck(one)
        self.disturbed()

    def tell(self, what: str) -> None:
        """Write something down."""
        if self.is_told:
            self.chronicle.append(f"{self.now():9.3f} s  {what}")

    def place_of(self, request: Request) -> str:
        """Where a request goes, in words; nothing where there is one StreamApp."""
        return f" of {request.namespace}/{request.name}" if self.has_several else ""

    async def latency(self, least: float = 0.002, most: float = 0.02) -> None:
        """Let a little time pass."""
        await asyncio.sleep(self.chance.uniform(least, most))


class DirectClient(StoreClient):
    """The product's client, with the store in place of a socket."""

    def __init__(self, store: ObjectStore, board: Switchboard, process: Process, witness: Witness) -> None:
        self._store, self._board, self._process, self._witness = store, board, process, witness

    async def deliver(self, request: Request, what: str, last_check: Check | None) -> Json:
        """Let happen what is planned for this call, before and after it."""
        await self._process.turn()
        await self._board.latency()
        if self._board.slowness:
            await asyncio.sleep(self._board.slowness)
        self._board.about = (self._board.has_several and app_of(request)) or None
        fates = self._board.arrive("write" if request.is_write else "read")
        if request.method == "GET" and request.plural in self._board.kinds_away:
            raise of_status(429, what, f"{request.plural} are away")
        await self._reach(request.namespace, what)
        await self._before(fates, what)
        if last_check is not None:
            last_check()
        self._board.leaves(self._process, request)
        is_late = await self._sending(fates)
        answer = self._answer(request, fates, what)
        await self._after(fates, what)
        if request.is_write:
            await self._board.latency()
        await self._process.turn()
        if is_late:
            raise UnavailableError(what, "the process was frozen", "it was done")
        return answer

    async def _reach(self, namespace: str, what: str) -> None:
        """Come through to a namespace, or raise."""
        status = self._board.namespaces_away.get(namespace)
        if status is None:
            return
        if status:
            raise of_status(status, what, f"{namespace} is away")
        await asyncio.sleep(API_DEADLINE)
        raise UnavailableError(what, f"{namespace} is silent", "nothing was done")

    async def _before(self, fates: Sequence[Disturbance], what: str) -> None:
        for fate in fates:
            match fate.what:
                case "crash-before":
                    self._process.die()
                case "freeze" | "freeze-raise":
                    self._process.freeze(fate.what.removeprefix("freeze"), fate.which)
                case "timeout-before":
                    await asyncio.sleep(API_DEADLINE)
                    raise UnavailableError(what, "injected: no answer", "nothing was done")
                case "429" | "409" | "500":
                    raise of_status(int(fate.what), what, "injected")
        await self._process.turn()

    async def _sending(self, fates: Sequence[Disturbance]) -> bool:
        """Between the last check and the sending; tell whether it took longer than a request may."""
        for fate in fates:
            if fate.what.startswith("freeze-sending"):
                began = asyncio.get_running_loop().time()
                self._process.freeze(fate.what.removeprefix("freeze-sending"), fate.which)
                await self._process.turn()
                return asyncio.get_running_loop().time() - began > API_DEADLINE
        return False

    def _answer(self, request: Request, fates: Sequence[Disturbance], what: str) -> Json:
        behind = next((fate.which for fate in fates if fate.what == "stale"), 0)
        as_of = None
        if behind and request.method == "GET":
            as_of = self._store.history[-min(behind, len(self._store.history))].version - 1
        if status := self._board.refuses(request):
            raise of_status(status, what, "injected: an admission policy refuses it")
        if request.is_write:
            self._board.writing(request)
        self._board.writer, self._board.froze_as_it_sent = self._process, froze_as_it_sent(fates)
        try:
            answer = answer_of(self._store, request, what, as_of)
        finally:
            self._board.writer = None
        self._witness.read(self._process, request, answer, is_stale=as_of is not None)
        if request.is_write:
            self._board.tell(f"process {self._process.number}: {told(request)}{self._board.place_of(request)}")
        return answer

    async def _after(self, fates: Sequence[Disturbance], what: str) -> None:
        for fate in fates:
            if fate.what == "crash-after":
                self._process.die()
            if fate.what == "timeout-after":
                await asyncio.sleep(API_DEADLINE)
                raise UnavailableError(what, "injected: no answer", "it was done")


class PortedGroup:
    """The Kafka side of the application, as `controller.ports.ApplicationGroup`."""

    def __init__(
        self, group: Group, board: Switchboard, process: Process, witness: Witness, now: Callable[[], datetime]
    ) -> None:
        self.group, self._board, self._process, self._witness = group, board, process, witness
        self._now = now

    def close(self) -> None:
        """Nothing is open."""

    async def describe(self) -> Poll:
        """Look at the group."""

        async def look() -> Poll:
            self.group.advance()
            poll = described(self.group.truth)
            shown = self.group.shown(poll)
            if shown is poll:
                self._witness.looked(self._process, self.group)
            return replace(shown, coordinator=self.group.coordinator)

        answer = await self._call(look)
        return Poll(GroupUnreadable(Reason.BrokersUnreachable, answer)) if isinstance(answer, str) else answer

    async def task_set(self) -> TaskSet | TopologyUnknown:
        """Find out which tasks there are."""

        async def look() -> TaskSet:
            return tasks_of(self.group)

        answer = await self._call(look)
        return TopologyUnknown(answer) if isinstance(answer, str) else answer

    async def ends(self, task_set: TaskSet) -> EndOffsets | EndsUnreadable:
        """Read the ends of all changelogs."""

        async def look() -> EndOffsets:
            self.group.advance()
            return ends_of(self.group.truth, task_set, self._now())

        answer = await self._call(look)
        return EndsUnreadable(answer) if isinstance(answer, str) else answer

    async def tails(self, ends: Mapping[TopicPartition, PartitionEnd]) -> Mapping[TopicPartition, int | Unknown]:
        """Look at the tails, which end in records that are applied."""

        async def look() -> Mapping[TopicPartition, int | Unknown]:
            return {partition: end.end for partition, end in ends.items()}

        answer = await self._call(look)
        return dict.fromkeys(ends, Unknown(answer)) if isinstance(answer, str) else answer

    async def configs(self, topics: Iterable[str]) -> Mapping[str, TopicConfig | ConfigUnread]:
        """Read how long the topics keep tombstones: as long as Kafka does by itself."""
        asked = frozenset(topics)

        async def look() -> TopicConfig:
            return TopicConfig(frozenset({"compact"}), None, timedelta(days=1))

        answer = await self._call(look)
        return dict.fromkeys(asked, ConfigUnread(answer) if isinstance(answer, str) else answer)

    async def trigger_rebalance(self, like_member: str) -> None:
        """Let a probe member join and leave."""
        is_ghost = False

        async def rebalance() -> bool:
            self._board.tell(f"process {self._process.number}: triggered rebalance")
            self._witness.rebalances(self._process, self.group)
            model = self.group.truth.members.get(like_member)
            return model is not None and self.group.trigger_rebalance(model.process_id, "10.9.0.1", stays=is_ghost)

        def leave_is_lost() -> None:
            nonlocal is_ghost
            is_ghost = True

        answer = await self._call(rebalance, leave_is_lost)
        if is_ghost:
            raise KafkaStepError("injected: the probe member could not leave")
        if isinstance(answer, str) or not answer:
            raise KafkaStepError(f"trigger rebalance: {answer}")

    async def standbys(self) -> StandbySetting | StandbySettingUnread:
        """Never called: nothing of a classic group must be put back."""
        raise AssertionError("the standbys of a classic group are read")

    async def set_standbys(self, replicas: int | None, instead_of: StandbySetting | None = None) -> None:
        """Never called: only groups of the streams protocol have this setting."""
        raise AssertionError(f"set standbys of a classic group to {replicas} instead of {instead_of}")

    async def evict(self, members: Sequence[MemberKey], reason: str) -> None:
        """Put members out."""

        async def leave() -> None:
            self._board.tell(f"process {self._process.number}: evict {', '.join(key.id for key in members)}")
            self._witness.evicts(self._process, self.group, members)
            for key in members:
                self.group.leave(key.id)

        answer = await self._call(leave)
        if isinstance(answer, str):
            raise KafkaStepError(f"evict for {reason}: {answer}")

    async def _call(
        self,
        make: Callable[[], Awaitable[T]],
        leave_is_lost: Callable[[], None] = lambda: None,
        site: str = "kafka",
    ) -> T | str:
        """Ask the brokers; a text says why there is no answer."""
        await self._process.turn()
        await self._board.latency(0.002, 0.05)
        fates = self._board.arrive(site)
        refusal = await self._before(fates, leave_is_lost)
        if refusal is not None:
            return refusal
        await self._wait_for_brokers()
        answer = await make()
        await self._wait_for_brokers()
        for fate in fates:
            if fate.what == "crash-after":
                self._process.die()
            if fate.what == "timeout-after":
                await asyncio.sleep(KAFKA_DEADLINE)
                return "injected: the answer was lost"
        await self._process.turn()
        return answer

    async def _wait_for_brokers(self) -> None:
        if self.group.slowness:
            await asyncio.sleep(self.group.slowness / 2)

    async def _before(self, fates: Sequence[Disturbance], leave_is_lost: Callable[[], None]) -> str | None:
        for fate in fates:
            if fate.what == "crash-before":
                self._process.die()
            if fate.what.startswith("freeze"):
                self._process.freeze(fate.what.removeprefix("freeze").removeprefix("-sending"), fate.which)
            if fate.what == "ghost":
                leave_is_lost()
            if fate.what == "refused":
                return "injected: refused"
            if fate.what == "timeout-before":
                await asyncio.sleep(KAFKA_DEADLINE)
                return "injected: no answer"
        await self._process.turn()
        if self.group.is_away:
            await asyncio.sleep(KAFKA_DEADLINE)
            return "the brokers are away"
        return None


def froze_as_it_sent(fates: Sequence[Disturbance]) -> bool:
    """Whether a process stands still between its last check of a request and the sending."""
    return any(fate.what.startswith("freeze-sending") for fate in fates)


def told(request: Request) -> str:
    """A write, in words."""
    body = request.body
    what = f"{request.method} {request.plural}{'/' + request.subresource if request.subresource else ''}"
    if request.plural == "statefulsets":
        record = _record_parts(body["metadata"].get("annotations", {}).get(HOLD_RECORD, "{}"))
        return f"{what} replicas={body.get('spec', {}).get('replicas')} record={record}"
    if request.plural == "poddisruptionbudgets":
        left_out = body["spec"]["selector"].get("matchExpressions", ())
        without = f" without {', '.join(name for one in left_out for name in one['values'])}" if left_out else ""
        return f"{what} maxUnavailable={body['spec']['maxUnavailable']}{without}"
    if request.subresource == "status":
        conditions = {each["type"]: each for each in body["status"].get("conditions", ())}
        shown = [f"{kind}={conditions[kind]['status']} {conditions[kind]['reason']}" for kind in sorted(conditions)]
        return f"{what} {', '.join(shown)}"
    return f"{what} {body.get('reason', '')}".rstrip()


def _record_parts(annotation: str) -> str | None:
    """What a hold record has; a raise carries one along that nobody can read."""
    try:
        record = json.loads(annotation)
    except json.JSONDecodeError:
        return "unreadable"
    return "+".join(name for name in ("hold", "step") if name in record) or None
