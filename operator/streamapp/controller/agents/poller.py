"""Polls the agents of one application once per pass, and remembers their reports.

Called by `reconcile.gather` as soon as the pods are read. A scale-up waits for no agent: such a pass polls none.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from streamapp.api.validation.parse import StreamApp
from streamapp.controller.agents.access import AgentGateway
from streamapp.controller.agents.kept_reports import NO_ROOM
from streamapp.controller.agents.topology import common_topology, topology_in_force
from streamapp.controller.apps.apps import Application
from streamapp.controller.apps.group_poller import GroupPoller
from streamapp.controller.apps.memory import Memory
from streamapp.core.evidence import changelog_tails
from streamapp.core.evidence.agent_views import remember
from streamapp.core.facts.agent_reports import AgentReport, AgentSilent, AgentsSeen, EndsAfter
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.tasks import TaskSet, settled_tasks
from streamapp.core.facts.workload import Pod
from streamapp.core.status.restore_rates import restore_rates
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.kinds import Key
from streamapp.kube.objects import from_json

ENDS_AT_REST = timedelta(seconds=25)
"""From one look at the ends to the next while nothing is waited for: at the slow pace of looks, each time."""


@dataclass(frozen=True, slots=True)
class AgentPoller:
    """Polls the agents of all applications."""

    agents: AgentGateway
    now: Callable[[], datetime]
    client: KubeClient
    """Reads the Secrets with the authorities of agents."""

    async def poll_agents(
        self, key: Key, streamapp: StreamApp, application: Application, statefulset: Json | None, live: list[Json]
    ) -> None:
        """Poll the agents in these pods, unless the application scales up; read end offsets if a decision needs them.

        Args:
            key: Of the StreamApp.
            streamapp: The StreamApp.
            application: Whose memory is written.
            statefulset: Its StatefulSet, as it was just read; None if it is missing, or was raised in this pass.
            live: The pods with its label, as they were just read.
        """
        memory = application.memory
        if not streamapp.spec.agent.enabled:
            memory.agents, memory.topology, memory.reported_topology = None, "", ""
            self.agents.kept.forget(key)
            return
        if statefulset is None or streamapp.replicas > statefulset["spec"]["replicas"]:
            memory.agents = replace(memory.agents or AgentsSeen(), no_key=self.agents.why_no_key())
            return
        container = str(streamapp.spec.application_container["name"])
        pods = from_json.pods(live, key.name, statefulset["metadata"]["uid"], container)
        await self._refresh_trust(key, pods, memory)
        readings = await self.agents.read_reports(key, streamapp, pods, memory.task_set)
        # A pod can report another long text in each pass, and parsing one takes its time.
        memory.reported_topology = await asyncio.to_thread(common_topology, readings)
        memory.topology = topology_in_force(memory.topology, memory.reported_topology, pods)
        ends = None
        if any(isinstance(read.reply, AgentReport) for read in readings):
            is_shrinking = streamapp.replicas < statefulset["spec"]["replicas"]
            ends = await self._ends(application, is_shrinking=is_shrinking)
        words, no_key = (read.reply for read in readings), self.agents.why_no_key()
        memory.agents = self._kept(key, remember(memory.agents, self.now(), words, ends, no_key=no_key))
        if ends is not None and isinstance(memory.task_set, TaskSet):
            memory.speeds = memory.speeds.with_rates(restore_rates(memory.agents, memory.task_set).values())

    def _kept(self, key: Key, seen: AgentsSeen) -> AgentsSeen:
        """What is kept of that: nothing if this namespace fills the memory of all."""
        if self.agents.kept.have_room(key, seen):
            return seen
        words = {ordinal: (AgentSilent(ordinal, f"agent of ordinal {ordinal}: {NO_ROOM}"),) for ordinal in seen.words}
        return replace(seen, words=words)

    async def _refresh_trust(self, key: Key, pods: Iterable[Pod], memory: Memory) -> None:
        """Have the Secrets read that these pods were made with, those in doubt sooner."""
        secrets = {pod.ordinal: pod.agent_tls_secret for pod in pods if pod.is_running and pod.agent_tls_secret}
        words = {} if memory.agents is None else {each: memory.agents.latest(each) for each in secrets}
        doubtful = {
            secrets[ordinal] for ordinal, word in words.items() if isinstance(word, AgentSilent) and word.is_untrusted
        }
        await self.agents.trust.refresh(self.client, key, secrets.values(), doubtful)

    async def _ends(self, application: Application, *, is_shrinking: bool) -> EndsAfter | None:
        """Read the end offsets after the reports, if a decision or a prediction needs them."""
        watch, task_set, began_at = application.watch, settled_tasks(application.memory.task_set), self.now()
        if watch is None or not isinstance(task_set, TaskSet):
            return None
        if not (is_shrinking or _needs_ends(watch, application.memory, began_at)):
            return None
        ends = await watch.group.ends(task_set)
        earlier_ends = _ends_of_last_join(application.memory)
        if isinstance(ends, EndOffsets) and earlier_ends is not None:
            ends = changelog_tails.known_from(earlier_ends, ends)
        return EndsAfter(began_at, ends)


def _needs_ends(watch: GroupPoller, memory: Memory, now: datetime) -> bool:
    """Tell whether ends are needed while the application has the pods that it should have.

    A classic group has those of its last join. A group of the streams protocol has no joins: without a look at rest,
    nobody could say how large its tasks are and how far its copies, and `plan` could give no time.
    """
    newest = memory.readings[0].group if memory.readings else None
    if not isinstance(newest, GroupDescription) or newest.streams is None:
        return watch.is_busy
    looks = () if memory.agents is None else memory.agents.ends
    return watch.is_awaited or not looks or now - looks[0].began_at >= ENDS_AT_REST


def _ends_of_last_join(memory: Memory) -> EndOffsets | None:
    """The end offsets of the last rebalance, some of them with their tails."""
    joins = (reading.rebalance for reading in memory.readings if reading.rebalance is not None)
    return next((rebalance.ends for rebalance in joins if isinstance(rebalance.ends, EndOffsets)), None)
