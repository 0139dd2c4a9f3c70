"""Requests to the agents of all applications: reads reports in a pass, sends announcements of a plan, counts both.

Called by `agents.poller` and `reconcile.apply`. Decides nothing, and no failure of an agent raises: an unreachable
agent is an `AgentSilent` with the reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from streamapp.agents.answers import AgentAddress, AgentReading, AnnouncementOutcome
from streamapp.agents.tls import AgentTls
from streamapp.api.validation.parse import StreamApp
from streamapp.controller.agents.kept_reports import KeptReports
from streamapp.controller.agents.keys import KeyFile, NoKeys
from streamapp.controller.agents.trust import AgentTrust, Untrusted
from streamapp.controller.metrics import ERROR, SUCCESS, Metrics
from streamapp.controller.ports import AgentAccess
from streamapp.core.actions.decision import Announce, CapHeartbeats
from streamapp.core.evidence.agent_views import taken_back
from streamapp.core.facts.agent_reports import AgentReply, AgentReport, AgentSilent
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.workload import Pod
from streamapp.kube.client.kinds import Key
from streamapp.wire.agent_fields import MOST_TASKS
from streamapp.wire.agent_token import token
from streamapp.wire.announcement import announcement, heartbeat_cap

log = structlog.get_logger()

FEWEST_TASKS = 100
"""That every report can have, whatever is known of the application."""
MOST_TASKS_OF_APPLICATION = 100_000
"""In the reports of all pods together: 20 for each of 5,000 tasks."""


@dataclass(slots=True)
class AgentGateway:
    """All agents, with the keys to them."""

    access: AgentAccess
    keys: KeyFile
    metrics: Metrics
    trust: AgentTrust = field(default_factory=AgentTrust)
    kept: KeptReports = field(default_factory=KeptReports)
    _silent: dict[tuple[Key, Ordinal], str] = field(default_factory=dict, init=False)
    """Agents that did not answer the last request, with the reason; each reason is logged once."""

    _announced: dict[Key, tuple[Epoch, list[str]]] = field(default_factory=dict, init=False)
    """The last announcement and its failures: a renewal is logged only if they change."""

    def why_no_key(self) -> str:
        """Why no agent can be asked; empty where there is a key."""
        keys = self.keys.read()
        return keys.why if isinstance(keys, NoKeys) else ""

    async def read_reports(
        self, key: Key, streamapp: StreamApp, pods: Iterable[Pod], task_set: TaskSet | TopologyUnknown
    ) -> list[AgentReading]:
        """Ask the agents of all pods that run at the same time; one answer each, in the order of their ordinals."""
        running = sorted((pod for pod in pods if pod.is_running), key=lambda pod: pod.ordinal)
        keys = self.keys.read()
        if isinstance(keys, NoKeys):
            readings = [AgentReading(AgentSilent(pod.ordinal, keys.why)) for pod in running]
        else:
            addresses, without = self._addresses(key, streamapp, running)
            readings = await self.access.read(
                addresses, streamapp.spec.application_id, token(keys[0], streamapp.metadata.uid)
            )
            readings = sorted([*readings, *without], key=lambda read: read.reply.ordinal)
            readings = bounded(readings, task_set)
        for read in readings:
            self._count_reply(key, read.reply)
        return readings

    async def announce(self, key: Key, streamapp: StreamApp, pods: Iterable[Pod], step: Announce) -> None:
        """Send the announcement to the agents of these ordinals at the same time; log and count failures."""
        keys = self.keys.read()
        if isinstance(keys, NoKeys):
            log.warning("announcement not sent", app=str(key), why=keys.why)
            return
        addresses, without = self._addresses(key, streamapp, [pod for pod in pods if pod.ordinal in step.to])
        content = announcement(step.process_ids, step.epoch, step.rebalance, step.ttl)
        results = await self.access.announce(addresses, content, token(keys[0], streamapp.metadata.uid))
        for one in results:
            self._count_announcement(key, one.outcome)
        failures = [one.why for one in results if one.outcome is not AnnouncementOutcome.TAKEN]
        failures += [read.reply.why for read in without if isinstance(read.reply, AgentSilent)]
        for _ in without:
            self._count_announcement(key, AnnouncementOutcome.FAILED)
        self._log_announcement(key, step, failures)

    async def cap_heartbeats(self, key: Key, streamapp: StreamApp, pods: Iterable[Pod], step: CapHeartbeats) -> None:
        """Send the cap to the agents of these ordinals at the same time; log failures."""
        keys = self.keys.read()
        if isinstance(keys, NoKeys):
            return  # agents with a cap have reported it, so this is a key that is gone since; the cap expires
        addresses, _ = self._addresses(key, streamapp, [pod for pod in pods if pod.ordinal in step.to])
        content = heartbeat_cap(step.cap, step.ttl)
        results = await self.access.cap_heartbeats(addresses, content, token(keys[0], streamapp.metadata.uid))
        failures = [one.why for one in results if one.outcome is not AnnouncementOutcome.TAKEN]
        write = log.warning if failures else log.info
        millis, seconds = step.cap.total_seconds() * 1000, step.ttl.total_seconds()
        write("heartbeats capped", app=str(key), to=list(step.to), millis=millis, seconds=seconds, failures=failures)

    def forget(self, key: Key) -> None:
        """Drop what is known of an application that is gone."""
        self._announced.pop(key, None)
        self.kept.forget(key)
        self.trust.forget(key)
        self._silent = {place: why for place, why in self._silent.items() if place[0] != key}

    def _addresses(
        self, key: Key, streamapp: StreamApp, pods: Iterable[Pod]
    ) -> tuple[list[AgentAddress], list[AgentReading]]:
        """Where these pods' agents are; and what is said of those that cannot be asked: no address, or no trust."""
        addresses, without = [], []
        for pod in pods:
            name, tls = f"{key.name}-{pod.ordinal}", self._tls(key, pod)
            if not pod.ips:
                reply = AgentSilent(pod.ordinal, f"agent of pod {name}: the pod has no address yet")
                without.append(AgentReading(reply))
            elif isinstance(tls, Untrusted):
                reply = AgentSilent(pod.ordinal, f"agent of pod {name}: {tls.why}", is_untrusted=True)
                without.append(AgentReading(reply))
            else:
                port = pod.agent_port or streamapp.spec.agent.port
                addresses.append(
                    AgentAddress(ordinal=pod.ordinal, pod=name, pod_uid=pod.uid, address=pod.ips[0], port=port, tls=tls)
                )
        return addresses, without

    def _tls(self, key: Key, pod: Pod) -> AgentTls | Untrusted | None:
        """How to know a pod's agent, by what the pod was made from; None: its agent serves plain HTTP.

        The name is that of the pod under the headless Service, which has the name of the StreamApp.
        """
        if pod.agent_tls_secret is None:
            return None
        found = self.trust.of(key, pod.agent_tls_secret)
        if isinstance(found, Untrusted):
            return found
        return AgentTls(found, f"{key.name}-{pod.ordinal}.{key.name}.{key.namespace}.svc")

    def _log_announcement(self, key: Key, step: Announce, failures: list[str]) -> None:
        if self._announced.get(key) == (step.epoch, failures):
            return
        self._announced[key] = (step.epoch, failures)
        write = log.warning if failures else log.info
        write(
            "announced",
            app=str(key),
            to=list(step.to),
            leaving=list(map(str, step.process_ids)),
            epoch=f"{step.epoch.lease}/{step.epoch.counter}",
            reason=step.reason.name,
            failures=failures,
        )

    def _count_announcement(self, key: Key, outcome: AnnouncementOutcome) -> None:
        result = SUCCESS if outcome is AnnouncementOutcome.TAKEN else ERROR
        self.metrics.announcements.labels(key.namespace, key.name, result).inc()

    def _count_reply(self, key: Key, reply: AgentReply) -> None:
        result = SUCCESS if isinstance(reply, AgentReport) else ERROR
        self.metrics.agent_requests.labels(key.namespace, key.name, result).inc()
        pod_key = (key, reply.ordinal)
        if isinstance(reply, AgentSilent):
            if self._silent.get(pod_key) != reply.why:
                log.warning("agent unreachable", app=str(key), ordinal=reply.ordinal, why=reply.why)
            self._silent[pod_key] = reply.why
        elif self._silent.pop(pod_key, None) is not None:
            log.info("agent reachable again", app=str(key), ordinal=reply.ordinal)


def bounded(readings: Iterable[AgentReading], task_set: TaskSet | TopologyUnknown) -> list[AgentReading]:
    """Take no report with more tasks than the application can have, nor so many reports that they fill the memory.

    A new version of an application can have more tasks than the one that was read last, so twice as many are taken.
    """
    known = len(task_set.ids) if isinstance(task_set, TaskSet) else None
    most = MOST_TASKS if known is None else max(FEWEST_TASKS, 2 * known)
    left = MOST_TASKS_OF_APPLICATION
    found = []
    for read in readings:
        count = len(read.reply.tasks or ()) if isinstance(read.reply, AgentReport) else 0
        why = ""
        if count > most:
            why = f"its report has {count} tasks, and the application has {known}"
        elif count > left:
            why = f"the reports of all pods together have more than {MOST_TASKS_OF_APPLICATION} tasks"
        if why:
            found.append(AgentReading(AgentSilent(read.reply.ordinal, f"agent of ordinal {read.reply.ordinal}: {why}")))
        else:
            left -= count
            found.append(read)
    return found


def moved_since(before: Mapping[Ordinal, AgentReport], now: Sequence[AgentReading]) -> str:
    """Say how the reports differ from the earlier ones, as a sentence; empty if none takes anything back."""
    for read in now:
        reply, earlier = read.reply, before.get(read.reply.ordinal)
        if isinstance(reply, AgentSilent):
            return f"ordinal {reply.ordinal} is silent: {reply.why}"
        if earlier is None:
            return f"ordinal {reply.ordinal} has come since"
        if why := taken_back(earlier, reply):
            return why
    return ""
