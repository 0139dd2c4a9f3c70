"""Polls the agents of one application once per pass, and remembers their reports.

Called by `reconcile.gather` as soon as the pods are read. A scale-up waits for no agent: such a pass polls none.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from streamapp.api.validation.parse import StreamApp
from streamapp.controller.agents.access import AgentGateway
from streamapp.controller.agents.topology import common_topology
from streamapp.controller.apps.apps import Application
from streamapp.controller.apps.group_poller import GroupPoller
from streamapp.controller.apps.memory import Memory
from streamapp.core.evidence import changelog_tails
from streamapp.core.evidence.agent_views import remember
from streamapp.core.facts.agent_reports import AgentReport, AgentsSeen, EndsAfter
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.status.restore_rates import restore_rates
from streamapp.kube.client.client import Json
from streamapp.kube.client.kinds import Key
from streamapp.kube.objects import from_json


@dataclass(frozen=True, slots=True)
class AgentPoller:
    """Polls the agents of all applications."""

    agents: AgentGateway
    now: Callable[[], datetime]

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
            return
        if statefulset is None or streamapp.replicas > statefulset["spec"]["replicas"]:
            memory.agents = replace(memory.agents or AgentsSeen(), no_key=self.agents.why_no_key())
            return
        container = str(streamapp.spec.application_container["name"])
        pods = from_json.pods(live, key.name, statefulset["metadata"]["uid"], container)
        readings = await self.agents.read_reports(key, streamapp, pods, memory.task_set)
        # A pod can report another long text in each pass, and parsing one takes its time.
        memory.reported_topology = await asyncio.to_thread(common_topology, readings)
        memory.topology = memory.reported_topology or memory.topology
        ends = None
        if any(isinstance(read.reply, AgentReport) for read in readings):
            is_shrinking = streamapp.replicas < statefulset["spec"]["replicas"]
            ends = await self._ends(application, is_shrinking=is_shrinking)
        words, no_key = (read.reply for read in readings), self.agents.why_no_key()
        memory.agents = remember(memory.agents, self.now(), words, ends, no_key=no_key)
        if ends is not None and isinstance(memory.task_set, TaskSet):
            memory.speeds = memory.speeds.with_rates(restore_rates(memory.agents, memory.task_set).values())

    async def _ends(self, application: Application, *, is_shrinking: bool) -> EndsAfter | None:
        """Read the end offsets after the reports; a converged application that waits for nothing needs none."""
        watch, task_set = application.watch, application.memory.task_set
        if (
            watch is None
            or not isinstance(task_set, TaskSet)
            or not (is_shrinking or _is_awaited(watch, application.memory))
        ):
            return None
        began_at = self.now()
        ends = await watch.group.ends(task_set)
        earlier_ends = _ends_of_last_join(application.memory)
        if isinstance(ends, EndOffsets) and earlier_ends is not None:
            ends = changelog_tails.known_from(earlier_ends, ends)
        return EndsAfter(began_at, ends)


def _is_awaited(watch: GroupPoller, memory: Memory) -> bool:
    """Tell whether a decision needs end offsets: a group of the streams protocol has none from a join."""
    newest = memory.readings[0].group if memory.readings else None
    is_streams = isinstance(newest, GroupDescription) and newest.streams is not None
    return watch.is_awaited if is_streams else watch.is_busy


def _ends_of_last_join(memory: Memory) -> EndOffsets | None:
    """The end offsets of the last rebalance, some of them with their tails."""
    joins = (reading.rebalance for reading in memory.readings if reading.rebalance is not None)
    return next((rebalance.ends for rebalance in joins if isinstance(rebalance.ends, EndOffsets)), None)
