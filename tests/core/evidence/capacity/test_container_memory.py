"""Whether the tasks of pods that leave fit into the memory of the pods that stay."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import Announce, Decision, GrantReplicas
from streamapp.core.decide import decide
from streamapp.core.evidence.capacity.container_memory import MemoryNeed, MemoryUnknown, memory_for_tasks
from streamapp.core.facts.agent_reports import AgentReport, ContainerMemory
from streamapp.core.facts.group import Member
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.reasons import Reason
from tests.builders import a_reading, a_record, a_snapshot, told
from tests.support import example

MEGA = 1_000_000
BARE = example.members(3, standbys=False)
COPIED = example.members(3)
DECLARED = ScalingPolicy(agent=True, memory_per_task=50 * MEGA)


def container(used: int, limit: int | None = 500, heap: int = 100) -> ContainerMemory:
    """In megabytes."""
    return ContainerMemory(used=used * MEGA, heap=heap * MEGA, limit=None if limit is None else limit * MEGA)


def reports(
    *memories: ContainerMemory | None, group: tuple[Member, ...] = BARE, **said: Any
) -> dict[Ordinal, AgentReport]:
    found = [example.report(one, memory=memory, **said) for one, memory in zip(group, memories, strict=True)]
    return {one.ordinal: one for one in found}


def need(found: dict[Ordinal, AgentReport], *leaving: int) -> MemoryNeed | MemoryUnknown | None:
    return memory_for_tasks(found, {Ordinal(one) for one in leaving}, example.task_set(), 50 * MEGA)


def test_each_pod_that_stays_needs_memory_for_its_share_of_the_tasks() -> None:
    same = container(480), container(480), container(480)
    assert need(reports(*same), 2) == MemoryNeed(Ordinal(0), 50 * MEGA, 20 * MEGA)
    assert need(reports(*same), 1, 2) == MemoryNeed(Ordinal(0), 200 * MEGA, 20 * MEGA)
    assert need(reports(container(400), container(460), container(499)), 2) == MemoryNeed(
        Ordinal(1), 50 * MEGA, 40 * MEGA
    )


def test_a_copy_that_is_there_already_takes_nothing_more() -> None:
    """Pod 2 has two tasks and two standbys; with one standby of each task, four copies are made on the two others."""
    same = container(480), container(480), container(480)
    assert need(reports(*same, group=COPIED, standby_replicas=0), 2) is None
    assert need(reports(*same, group=COPIED, standby_replicas=1), 2) == MemoryNeed(Ordinal(0), 100 * MEGA, 20 * MEGA)


def test_a_container_without_a_limit_has_memory_for_all() -> None:
    assert need(reports(container(480, None), container(480, None), container(480)), 2) is None


def test_an_agent_that_does_not_tell_leaves_it_unknown() -> None:
    assert need(reports(container(10), None, container(10)), 2) == MemoryUnknown(Ordinal(1))


def test_tasks_of_an_unknown_topology_count_as_tasks_with_state() -> None:
    found = reports(container(480), container(480), container(480))
    assert memory_for_tasks(found, {Ordinal(2)}, TopologyUnknown("?"), 50 * MEGA) == need(found, 2)


def decided(
    *memories: ContainerMemory | None, policy: ScalingPolicy = DECLARED, group: tuple[Member, ...] = BARE, **said: Any
) -> Decision:
    """A scale-down from 3 to 2."""
    seen = example.agents(group, **said)
    words = {
        ordinal: tuple(replace(one, memory=memories[ordinal]) for one in words if isinstance(one, AgentReport))
        for ordinal, words in seen.words.items()
    }
    readings = tuple(a_reading(group, at=at, rebalance=None) for at in (1, 6, 14))
    return decide(a_snapshot(readings=readings, record=a_record(), agents=replace(seen, words=words)), policy)


def announced(decision: Decision) -> list[int]:
    return [len(step.process_ids) for step in decision.plan if isinstance(step, Announce)]


def test_a_pod_is_not_drained_into_memory_that_does_not_suffice() -> None:
    tight = decided(container(480), container(480), container(480))
    assert (told(tight), announced(tight)) == (("Hold", "MemoryTooSmall"), [])
    assert tight.detail == "ordinal 0: 50 MB are needed, 20 MB are free"
    wide = decided(container(440), container(440), container(480))
    assert (told(wide), announced(wide)) == (("Hold", "AnnouncementPending"), [1])


def test_what_was_declared_and_cannot_be_seen_holds() -> None:
    hidden = decided(container(100), None, container(100))
    assert (told(hidden), hidden.detail, announced(hidden)) == (("Hold", "MemoryUnknown"), "ordinal 1", [])


def test_a_drain_that_has_begun_goes_on() -> None:
    same = (container(480),) * 3
    tight = decided(*same, heard=example.leaving(2), round=example.assigned())
    assert announced(tight) == []
    assert tight.reason is Reason.MemoryTooSmall


STANDBYS = replace(DECLARED, source=LearnerSource.STANDBYS)


def test_a_pod_whose_standbys_would_not_fit_elsewhere_stays() -> None:
    def go(used: int, policy: ScalingPolicy = STANDBYS) -> Decision:
        same = (container(used),) * 3
        return decided(*same, policy=policy, group=COPIED, standby_replicas=1, is_ours=False)

    assert told(go(480)) == ("Hold", "MemoryTooSmall")
    assert told(go(390)) == ("Step", "Covered")
    forced = replace(STANDBYS, scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="out of money")
    assert [one.to_replicas for one in go(480, forced).plan if isinstance(one, GrantReplicas)] == [2]


@pytest.mark.parametrize(("used", "warns"), [(120, False), (240, False), (320, True)])
def test_what_nobody_declared_warns_and_holds_nothing(used: int, warns: bool) -> None:
    same = (container(used, 360),) * 3
    decision = decided(*same, policy=ScalingPolicy(agent=True))
    assert (told(decision), announced(decision)) == (("Hold", "AnnouncementPending"), [1])
    found = [(one.reason, one.detail) for one in decision.warnings if one.reason is Reason.MemoryMayNotSuffice]
    assert found == ([(Reason.MemoryMayNotSuffice, "2 replicas")] if warns else [])


def test_what_is_unknown_and_not_declared_warns_of_nothing() -> None:
    decision = decided(None, None, None, policy=ScalingPolicy(agent=True))
    assert Reason.MemoryMayNotSuffice not in {one.reason for one in decision.warnings}
