"""Deliberate faults in what keeps a pod where a silent or a rare event has befallen; each fails in its own scene.

Without `taken_back` in the views of the agents alone nothing breaks: what the judgement made use of is compared with
what they say right before the write. So one mutant takes both away. Another one forgets changelogs that were in view,
and those that the topology of the brokers names: one of the two is enough.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from streamapp.controller.agents import access
from streamapp.controller.apps import group_poller
from streamapp.controller.reconcile import apply, gather
from streamapp.core import decide
from streamapp.core.evidence import agent_views, readings
from streamapp.core.facts import topology
from streamapp.core.facts.group import GroupReading, GroupUnreadable
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topology import BrokerSubtopology
from streamapp.core.facts.workload import Volume, Workload
from streamapp.core.gates import evaluate
from streamapp.core.gates.case import GateInput
from streamapp.core.reasons import Reason
from streamapp.kube.objects import from_json
from tests.prove.mutants import Mutant
from tests.prove.streams import ports

Json = dict[str, Any]


def _group_not_compared() -> Iterator[Any]:
    yield patch.object(apply, "changed_since", lambda *_: "")


def _agents_not_compared() -> Iterator[Any]:
    yield patch.object(apply, "moved_since", lambda *_: "")


def _no_word_is_taken_back() -> Iterator[Any]:
    for module in (access, agent_views):
        yield patch.object(module, "taken_back", lambda *_: "")


def _topics_are_believed() -> Iterator[Any]:
    for module in (gather, decide):
        yield patch.object(module, "uncontradicted", lambda snapshot, _: snapshot)


def _changelogs_are_forgotten() -> Iterator[Any]:
    """What the coordinator names counts no more than what its broker lists, nor does what was in view before."""
    sound = topology.universe_of_broker

    def universe_of_broker(
        application_id: str, known: Sequence[BrokerSubtopology], partitions: Mapping[str, int], by_text: TaskSet | None
    ) -> TaskSet | TopologyUnknown:
        listed = [replace(each, changelogs=each.changelogs & partitions.keys()) for each in known]
        return sound(application_id, listed, partitions, by_text)

    yield patch.object(readings, "changelogs_gone", lambda *_: "")
    yield patch.object(ports, "universe_of_broker", universe_of_broker)


def _lost_is_bound() -> Iterator[Any]:
    sound = from_json.volumes

    def volumes(live: Sequence[Json], *others: Any) -> tuple[Volume, ...]:
        return sound([{**claim, "status": {}} for claim in live], *others)

    yield patch.object(from_json, "volumes", volumes)


def _deleted_is_there() -> Iterator[Any]:
    yield patch.object(Workload, "lasting_statefulset", property(lambda self: self.statefulset))


def _first_is_the_application() -> Iterator[Any]:
    yield patch.object(from_json, "_application_of", lambda pod, _: str(pod["spec"]["containers"][0]["name"]))


def _told_by_the_name_alone() -> Iterator[Any]:
    yield patch.object(from_json, "_mounts_claim_of", lambda *_: False)


def _aged_from_the_answer() -> Iterator[Any]:
    yield patch.object(group_poller, "GroupReading", lambda **seen: GroupReading(**{**seen, "asked_at": None}))


def _silence_is_unrest() -> Iterator[Any]:
    sound = evaluate._is_restless

    def is_restless(case: GateInput, override: evaluate.CoverageOverride) -> bool:
        is_forced = override.reason is Reason.RestartUncovered
        return (is_forced and isinstance(case.reading.group, GroupUnreadable)) or sound(case, override)

    yield patch.object(evaluate, "_is_restless", is_restless)


MEMORY_MUTANTS = (
    Mutant("the newest look at the group is not compared", _group_not_compared, "thread-replaced-as-it-goes"),
    Mutant("the newest words of agents are not compared", _agents_not_compared, "streams-demand-copy-lost-as-it-goes"),
    Mutant("no word of an agent is taken back", _no_word_is_taken_back, "streams-demand-copy-lost-as-it-goes"),
)
EVENT_MUTANTS = (
    Mutant("a task whose changelog is hidden has no state", _topics_are_believed, "changelog-unseen-by-a-new-process"),
    Mutant("a changelog that was in view is forgotten", _changelogs_are_forgotten, "streams-demand-changelog-unseen"),
    Mutant("a claim that lost its volume is a volume", _lost_is_bound, "claim-lost-in-hold"),
    Mutant("the first container is the application's", _first_is_the_application, "sidecar-ends"),
    Mutant("silent brokers are a group that never rests", _silence_is_unrest, "brokers-away-in-a-rollout-at-once"),
    Mutant("a container is known by name", _told_by_the_name_alone, "container-renamed-beside-a-sidecar"),
    Mutant("a look is as old as its answer", _aged_from_the_answer, "brokers-slow-in-rollout"),
    Mutant("a StatefulSet that is being deleted is there", _deleted_is_there, "statefulset-deleted-slowly"),
)
