"""The state table, written down by hand: every cell has one verdict and one reason.

`docs/state-table.md` is made by asking the code; this is what the code ought to answer. `any` stands for every state of
the learners, a single cell for every state of the group.
"""

import pytest

from tests.support.state_table import GroupCondition, HoldState, LearnerState, Row, WishState, rows

GROUPS = tuple(GroupCondition)

DONE, REBALANCING, UNREACHABLE = (
    f"CloseStep: {reason}" for reason in ("StepClosed", "GroupRebalancing", "BrokersUnreachable")
)
CLOSING = f"open step | any         | {DONE} | {REBALANCING} | {UNREACHABLE} | {DONE} | {DONE}"

BLIND = "Hold: GroupRebalancing | Hold: BrokersUnreachable | Hold: ForeignMember | Hold: ProcessIdDuplicated"

UNTOLD = """Hold: AnnouncementPending | Hold: AnnouncementPending | Hold: BrokersUnreachable | Hold: ForeignMember \
| Hold: ProcessIdDuplicated"""
LEARNING = """Hold: LearnersCatchingUp | Hold: LearnersCatchingUp | Hold: BrokersUnreachable | Hold: ForeignMember \
| Hold: ProcessIdDuplicated"""

EXPECTED = {
    WishState.RAISE: """
none      | any         | Grow: Growing
open      | any         | Grow: Growing
open step | any         | Grow: Growing
left over | any         | Grow: Growing
""",
    WishState.SAME: f"""
none      | any         | Steady: Steady
open      | any         | Steady: Steady
{CLOSING}
left over | any         | Steady: Steady
""",
    WishState.LOWER: f"""
none      | covered     | Hold: HoldBegan          | {BLIND}
none      | catching up | Hold: LearnersCatchingUp | {BLIND}
none      | unknown     | Hold: LagUnknown         | {BLIND}
none      | none        | Hold: NoLearners         | {BLIND}
none      | on demand, learning            | {UNTOLD}
none      | on demand, the top pod drained | {UNTOLD}
open      | covered     | Step: Covered            | {BLIND}
open      | catching up | Hold: LearnersCatchingUp | {BLIND}
open      | unknown     | Hold: LagUnknown         | {BLIND}
open      | none        | Hold: NoLearners         | {BLIND}
open      | on demand, learning            | {LEARNING}
open      | on demand, the top pod drained | Step: Drained | {BLIND}
{CLOSING}
left over | covered     | Hold: HoldBegan          | {BLIND}
left over | catching up | Hold: LearnersCatchingUp | {BLIND}
left over | unknown     | Hold: LagUnknown         | {BLIND}
left over | none        | Hold: NoLearners         | {BLIND}
left over | on demand, learning            | {UNTOLD}
left over | on demand, the top pod drained | {UNTOLD}
""",
    WishState.ZERO_FORBIDDEN: f"""
none      | any         | Hold: ZeroNotAllowed
open      | any         | Hold: ZeroNotAllowed
{CLOSING}
left over | any         | Hold: ZeroNotAllowed
""",
    WishState.ZERO_ALLOWED: f"""
none      | any         | Hold: HoldBegan          | {BLIND}
open      | any         | Step: StoppingToZero     | {BLIND}
{CLOSING}
left over | any         | Hold: HoldBegan          | {BLIND}
""",
    WishState.PAUSED: """
none      | any         | Paused: Paused
open      | any         | Paused: Paused
open step | any         | Paused: Paused
left over | any         | Paused: Paused
""",
    WishState.DRY_RUN: f"""
none      | covered     | Step: Covered            | {BLIND}
none      | catching up | Hold: LearnersCatchingUp | {BLIND}
none      | unknown     | Hold: LagUnknown         | {BLIND}
none      | none        | Hold: NoLearners         | {BLIND}
none      | on demand, learning            | {UNTOLD}
none      | on demand, the top pod drained | {UNTOLD}
open      | covered     | Step: Covered            | {BLIND}
open      | catching up | Hold: LearnersCatchingUp | {BLIND}
open      | unknown     | Hold: LagUnknown         | {BLIND}
open      | none        | Hold: NoLearners         | {BLIND}
open      | on demand, learning            | {LEARNING}
open      | on demand, the top pod drained | Step: Drained | {BLIND}
{CLOSING}
left over | covered     | Step: Covered            | {BLIND}
left over | catching up | Hold: LearnersCatchingUp | {BLIND}
left over | unknown     | Hold: LagUnknown         | {BLIND}
left over | none        | Hold: NoLearners         | {BLIND}
left over | on demand, learning            | {UNTOLD}
left over | on demand, the top pod drained | {UNTOLD}
""",
    WishState.INVALID: """
none      | any         | Stalled: InvalidSpec
open      | any         | Stalled: InvalidSpec
open step | any         | Stalled: InvalidSpec
left over | any         | Stalled: InvalidSpec
""",
}

Cell = tuple[WishState, HoldState, LearnerState, GroupCondition]


def expected_cells() -> dict[Cell, str]:
    cells: dict[Cell, str] = {}
    for desired, text in EXPECTED.items():
        for line in filter(None, text.splitlines()):
            hold, learners, *told = (part.strip() for part in line.split("|"))
            assert len(told) in {1, len(GROUPS)}, line
            by_group = dict(zip(GROUPS, told * len(GROUPS) if len(told) == 1 else told, strict=True))
            for learner in LearnerState if learners == "any" else [LearnerState(learners)]:
                for group, cell in by_group.items():
                    cells[desired, HoldState(hold), learner, group] = cell
    return cells


WANTED = expected_cells()


def test_the_table_has_every_cell_and_none_twice() -> None:
    keys = [(row.desired, row.hold, row.learners, row.group) for row in rows()]
    assert (len(keys), set(keys)) == (8 * 4 * 6 * 5, set(WANTED))


@pytest.mark.parametrize("desired", WishState, ids=lambda desired: desired.value)
def test_every_cell_says_what_is_written_here(desired: WishState) -> None:
    told = {(row.desired, row.hold, row.learners, row.group): row.told for row in rows() if row.desired is desired}
    assert told == {cell: wanted for cell, wanted in WANTED.items() if cell[0] is desired}


def takes_a_pod(row: Row) -> bool:
    return any(getattr(step, "is_removal", False) for step in row.decision.plan)


def test_pods_go_only_where_the_table_says_step_and_it_is_no_dry_run() -> None:
    going = {(row.desired, row.hold, row.learners, row.group) for row in rows() if takes_a_pod(row)}
    stable = GroupCondition.STABLE
    assert going == {
        (WishState.LOWER, HoldState.OPEN, LearnerState.COVERED, stable),
        (WishState.LOWER, HoldState.OPEN, LearnerState.DRAINED, stable),
        *((WishState.ZERO_ALLOWED, HoldState.OPEN, learners, stable) for learners in LearnerState),
    }
