"""What a release overrides, over the whole state table: coverage, and nothing else."""

from dataclasses import replace
from itertools import product

from streamapp.core import table
from streamapp.core.coverage_gates import OVERRIDABLE
from streamapp.core.decision import Verdict
from streamapp.core.planning import decide
from streamapp.core.reasons import Reason
from streamapp.core.snapshot import Release
from streamapp.core.table import GroupCondition, HoldState, LearnerState, WishState
from tests.builders import POLICY


def test_a_release_ends_a_hold_for_the_reasons_that_are_said_to_be_overridable_and_for_no_other() -> None:
    release = Release(hold_id="h-1", why="out of money")
    overridden: set[Reason] = set()
    kept: set[Reason] = set()
    for hold, learners, group in product((HoldState.OPEN,), LearnerState, GroupCondition):
        snapshot = table.a_snapshot(WishState.LOWER, hold, learners, group)
        before = decide(snapshot, POLICY)
        after = decide(replace(snapshot, app=replace(snapshot.app, release=release)), POLICY)
        if before.verdict is Verdict.HOLD:
            (overridden if after.reason is not before.reason else kept).add(before.reason)
    assert overridden == {Reason.LearnersCatchingUp, Reason.LagUnknown, Reason.NoLearners}
    assert overridden <= OVERRIDABLE
    assert kept == {Reason.BrokersUnreachable, Reason.GroupRebalancing, Reason.ForeignMember, Reason.ProcessIdDoubled}
    assert not kept & OVERRIDABLE
