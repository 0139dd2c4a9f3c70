"""The agents of all applications: asks them in a pass, tells them what a plan announces, and counts both.

Called by `gather` and `apply`. Nothing here raises for what an agent does, and nothing is decided: an agent that cannot
be asked is a silent one, with the reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from streamapp.agents.answers import Outcome, Place, Read
from streamapp.api.validation.parse import StreamApp
from streamapp.controller.agents.keys import KeyFile, NoKeys
from streamapp.controller.metrics import ERROR, SUCCESS, Metrics
from streamapp.controller.ports import AgentAccess
from streamapp.core.actions.decision import Announce
from streamapp.core.facts.agent_reports import AgentReply, AgentReport, AgentSilent
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Pod
from streamapp.kube.client.kinds import Key
from streamapp.wire.agent_token import token
from streamapp.wire.announcement import announcement

log = structlog.get_logger()


@dataclass(slots=True)
class AgentSide:
    """All agents, with the keys to them."""

    access: AgentAccess
    keys: KeyFile
    metrics: Metrics
    _silent: dict[tuple[Key, Ordinal], str] = field(default_factory=dict, init=False)
    """Who was silent when it was last asked, and why; told once."""

    _announced: dict[Key, tuple[Epoch, list[str]]] = field(default_factory=dict, init=False)
    """What was announced last and whom it did not reach: a renewal is told only where that changes."""

    async def ask(self, key: Key, found: StreamApp, pods: Iterable[Pod]) -> list[Read]:
        """Ask the agents of all pods that run at the same time; one answer each, in the order of their ordinals."""
        running = sorted((pod for pod in pods if pod.is_running), key=lambda pod: pod.ordinal)
        keys = self.keys.read()
        if isinstance(keys, NoKeys):
            reads = [Read(AgentSilent(pod.ordinal, keys.why)) for pod in running]
        else:
            places, without = _places(key, found, running)
            heard = await self.access.read(places, found.spec.application_id, token(keys[0], found.metadata.uid))
            reads = sorted([*heard, *without], key=lambda read: read.word.ordinal)
        for read in reads:
            self._count(key, read.word)
        return reads

    async def tell(self, key: Key, found: StreamApp, pods: Iterable[Pod], step: Announce) -> None:
        """Tell the agents of these ordinals at the same time; what did not arrive is told in the log and counted."""
        wanted = [pod for pod in pods if pod.ordinal in step.to]
        keys = self.keys.read()
        if isinstance(keys, NoKeys):
            log.warning("announcement not sent", app=str(key), why=keys.why)
            return
        places, without = _places(key, found, wanted)
        content = announcement(step.process_ids, step.epoch, step.rebalance, step.ttl)
        told = await self.access.announce(places, content, token(keys[0], found.metadata.uid))
        for one in told:
            self._counted(key, one.outcome)
        failures = [one.why for one in told if one.outcome is not Outcome.TAKEN]
        failures += [read.word.why for read in without if isinstance(read.word, AgentSilent)]
        for _ in without:
            self._counted(key, Outcome.FAILED)
        self._log_announcement(key, step, failures)

    def forget(self, key: Key) -> None:
        """Drop what is known of an application that is gone."""
        self._announced.pop(key, None)
        self._silent = {place: why for place, why in self._silent.items() if place[0] != key}

    def _log_announcement(self, key: Key, step: Announce, failures: list[str]) -> None:
        if self._announced.get(key) == (step.epoch, failures):
            return
        self._announced[key] = (step.epoch, failures)
        tell = log.warning if failures else log.info
        tell(
            "announced",
            app=str(key),
            to=list(step.to),
            leaving=list(map(str, step.process_ids)),
            epoch=f"{step.epoch.lease}/{step.epoch.counter}",
            reason=step.reason.name,
            failures=failures,
        )

    def _counted(self, key: Key, outcome: Outcome) -> None:
        result = SUCCESS if outcome is Outcome.TAKEN else ERROR
        self.metrics.announcements.labels(key.namespace, key.name, result).inc()

    def _count(self, key: Key, word: AgentReply) -> None:
        result = SUCCESS if isinstance(word, AgentReport) else ERROR
        self.metrics.agent_requests.labels(key.namespace, key.name, result).inc()
        place = (key, word.ordinal)
        if isinstance(word, AgentSilent):
            if self._silent.get(place) != word.why:
                log.warning("agent unreachable", app=str(key), ordinal=word.ordinal, why=word.why)
            self._silent[place] = word.why
        elif self._silent.pop(place, None) is not None:
            log.info("agent reachable again", app=str(key), ordinal=word.ordinal)


def moved_since(before: Mapping[Ordinal, AgentReport], now: Sequence[Read]) -> str:
    """Tell what the agents say otherwise than they did, as a sentence; empty where they say the same.

    A position that has grown is no change, since every copy that was caught up still is.
    """
    for read in now:
        word, earlier = read.word, before.get(read.word.ordinal)
        if isinstance(word, AgentSilent):
            return f"ordinal {word.ordinal} is silent: {word.why}"
        if earlier is None or _tasks(word) != _tasks(earlier):
            return f"tasks of ordinal {word.ordinal} have changed since"
    return ""


def _tasks(report: AgentReport) -> tuple[object, ...]:
    tasks = None
    if report.tasks is not None:
        tasks = frozenset((task.id, task.is_active, task.state) for task in report.tasks)
    return report.pod_uid, report.incarnation, report.process_id, report.is_ours, tasks


def _places(key: Key, found: StreamApp, pods: Iterable[Pod]) -> tuple[list[Place], list[Read]]:
    """Where these pods' agents are, and who has no address to ask at."""
    places, without = [], []
    for pod in pods:
        name = f"{key.name}-{pod.ordinal}"
        if not pod.ips:
            without.append(Read(AgentSilent(pod.ordinal, f"agent of pod {name}: the pod has no address yet")))
            continue
        port = found.spec.agent.port
        places.append(Place(ordinal=pod.ordinal, pod=name, pod_uid=pod.uid, address=pod.ips[0], port=port))
    return places, without
