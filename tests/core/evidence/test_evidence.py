"""What is derived once is never handed out for something else."""

from dataclasses import replace
from datetime import timedelta

from streamapp.core.evidence.evidence import Evidence
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState
from tests.builders import POLICY, a_snapshot
from tests.support import example


def readings_of(count: int) -> list[GroupReading]:
    """Readings of groups of so many members each, newest first."""
    return [example.reading(example.members(3), timedelta(seconds=number)) for number in range(count)]


def test_each_reading_is_placed_once() -> None:
    evidence = Evidence(a_snapshot(), POLICY)
    latest = evidence.snapshot.readings[0]
    assert evidence.of(latest) is evidence.of(latest) is evidence.latest
    found = evidence.of(latest)
    assert found is not None
    assert found.placement is found.placement


def test_a_reading_that_is_gone_lends_its_evidence_to_no_other() -> None:
    evidence = Evidence(a_snapshot(), POLICY)
    for members in range(1, 40):
        # Made and dropped: without a hold on it, the next one often lies at the same address.
        group = GroupDescription(GroupState.STABLE, example.members(members))
        found = evidence.of(replace(readings_of(1)[0], group=group))
        assert found is not None
        assert len(found.group.members) == members


def test_another_policy_has_evidence_of_its_own() -> None:
    evidence = Evidence(a_snapshot(), POLICY)
    assert evidence.under(POLICY) is evidence
    limited = evidence.under(replace(POLICY, acceptable_recovery_lag=1))
    assert (limited is evidence, limited.policy.acceptable_recovery_lag) == (False, 1)
