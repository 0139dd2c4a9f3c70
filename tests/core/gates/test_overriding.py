"""What a user's word overrides: the reasons that say so are those that it ends."""

from dataclasses import replace
from itertools import product

import pytest

from streamapp.core.actions.decision import Verdict
from streamapp.core.decide import decide
from streamapp.core.evidence.coverage import TaskWait
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.snapshot import HoldOverride
from streamapp.core.gates.coverage_gates import refusal_of
from streamapp.core.reasons import Reason
from tests.builders import POLICY
from tests.support import state_table
from tests.support.state_table import GroupCondition, HoldState, LearnerState, WishState


def test_an_override_ends_a_hold_for_overridable_reasons_only() -> None:
    override = HoldOverride(hold_id="h-1", why="out of money")
    overridden: set[Reason] = set()
    kept: set[Reason] = set()
    for learners, group in product(LearnerState, GroupCondition):
        snapshot = state_table.a_snapshot(WishState.LOWER, HoldState.OPEN, learners, group)
        before = decide(snapshot, POLICY)
        after = decide(replace(snapshot, app=replace(snapshot.app, override=override)), POLICY)
        if before.verdict is Verdict.HOLD:
            (overridden if after.reason is not before.reason else kept).add(before.reason)
    assert overridden == {Reason.LearnersCatchingUp, Reason.LagUnknown, Reason.NoLearners}
    assert all(reason.row.is_overridable for reason in overridden)
    assert kept == {
        Reason.BrokersUnreachable,
        Reason.GroupRebalancing,
        Reason.ForeignMember,
        Reason.ProcessIdDuplicated,
    }
    assert not any(reason.row.is_overridable for reason in kept)


@pytest.mark.parametrize(
    ("count", "detail"), [(1, "1 task waits; 0_0 has no copy"), (2, "2 tasks wait; 0_1 has no copy")]
)
def test_tasks_that_wait_are_counted_in_a_sentence(count: int, detail: str) -> None:
    waits = tuple(
        TaskWait(task=TaskId(0, number), reason=Reason.NoLearners, best=None, records_to_go=None)
        for number in range(count)
    )
    assert refusal_of(waits).detail == detail
