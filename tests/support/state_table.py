"""The state table: what is decided in every combination of desired replicas, hold, learners and group.

Each row is made by calling `decide` on a small application in that state, so the table cannot say anything else than
the code does. `docs/generate.py` writes it to `docs/state-table.md`; what it ought to say is written down a second
time, by hand, in the tests.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import product

from streamapp.core.actions.decision import Decision
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentsSeen
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, GroupUnreadable, Member
from streamapp.core.facts.hold_record import Epoch, Hold, HoldRecord, OpenStep, Progress
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import App, Snapshot
from streamapp.core.facts.workload import Budget, Volume
from streamapp.core.reasons import Reason
from tests.support import example


class WishState(Enum):
    """What the user wants."""

    RAISE = "raise"
    SAME = "same"
    LOWER = "lower"
    ZERO_FORBIDDEN = "zero, not allowed"
    ZERO_ALLOWED = "zero, allowed, one pod left"
    PAUSED = "lower, but paused"
    DRY_RUN = "lower, as a dry run"
    INVALID = "lower, but the spec is invalid"


class HoldState(Enum):
    """What the hold record says."""

    NONE = "none"
    OPEN = "open"
    STEP = "open step"
    LEFT_OVER = "left over"


class LearnerState(Enum):
    """How far the copies on the pods that stay are."""

    COVERED = "covered"
    CATCHING_UP = "catching up"
    UNKNOWN = "unknown"
    NONE = "none"
    LEARNING = "on demand, learning"
    DRAINED = "on demand, the top pod drained"

    @property
    def is_on_demand(self) -> bool:
        """Agents in all pods say that our assignor is at work, and have heard who leaves."""
        return self in {LearnerState.LEARNING, LearnerState.DRAINED}


class GroupCondition(Enum):
    """What the broker says."""

    STABLE = "stable"
    REBALANCING = "rebalancing"
    UNREACHABLE = "unreachable"
    FOREIGN = "foreign member"
    DOUBLED = "doubled process ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cell with its decision."""

    desired: WishState
    hold: HoldState
    learners: LearnerState
    group: GroupCondition
    decision: Decision

    @property
    def told(self) -> str:
        """The verdict with its reason."""
        return f"{self.decision.verdict.value}: {self.decision.reason.name}"

    @property
    def done(self) -> str:
        """The steps of the plan, by name and in order."""
        return ", ".join(type(step).__name__ for step in self.decision.plan)


@cache
def rows() -> tuple[Row, ...]:
    """Every combination, decided; a process decides them once."""
    return tuple(_rows())


def _rows() -> Iterator[Row]:
    for desired, hold, learners, group in product(WishState, HoldState, LearnerState, GroupCondition):
        snapshot = a_snapshot(desired, hold, learners, group)
        policy = ScalingPolicy(allow_zero=desired is WishState.ZERO_ALLOWED, agent=learners.is_on_demand)
        yield Row(desired=desired, hold=hold, learners=learners, group=group, decision=decide(snapshot, policy))


def a_snapshot(desired: WishState, hold: HoldState, learners: LearnerState, group: GroupCondition) -> Snapshot:
    """The small application in one of the states."""
    pods = 1 if desired is WishState.ZERO_ALLOWED else 3
    whole = example.snapshot(pods)
    statefulset = replace(example.statefulset(pods), record=_record(hold, pods))
    budget = Budget.CLOSED if hold is HoldState.STEP else Budget.OPEN
    volumes = whole.workload.volumes
    if group is GroupCondition.DOUBLED:
        volumes = (*volumes, Volume(ordinal=Ordinal(9), process_id=example.process_id(0)))
    members = _members(learners, pods)
    return replace(
        whole,
        app=_app(desired, pods),
        workload=replace(whole.workload, statefulset=statefulset, volumes=volumes, budget=budget),
        readings=tuple(_seen(one, group) for one in example.two_readings(members)),
        agents=_agents(members, hold) if learners.is_on_demand else None,
    )


def markdown() -> str:
    """The whole table, one section per number of desired replicas."""
    cells = {(row.desired, row.hold, row.learners, row.group): _cell(row) for row in rows()}
    lines = []
    for desired in WishState:
        lines += ["", f"## Desired replicas: {desired.value}", ""]
        lines.append("| Hold | Learners | " + " | ".join(group.value for group in GroupCondition) + " |")
        lines.append("|---|---|" + "---|" * len(GroupCondition))
        for hold in HoldState:
            lines += _rows_of_hold(
                hold,
                {
                    learners.value: " | ".join(cells[desired, hold, learners, group] for group in GroupCondition)
                    for learners in LearnerState
                },
            )
    return "\n".join(lines) + "\n"


def _cell(row: Row) -> str:
    return f"{row.told} → {row.done}" if row.done else row.told


def _rows_of_hold(hold: HoldState, by_learners: dict[str, str]) -> list[str]:
    """One line per state of the learners, or a single one where they make no difference."""
    if len(set(by_learners.values())) == 1:
        return [f"| {hold.value} | any | {next(iter(by_learners.values()))} |"]
    return [f"| {hold.value} | {learners} | {cells} |" for learners, cells in by_learners.items()]


def _app(desired: WishState, pods: int) -> App:
    replicas = {WishState.RAISE: pods + 1, WishState.SAME: pods}.get(desired, pods - 1)
    if desired in {WishState.ZERO_ALLOWED, WishState.ZERO_FORBIDDEN}:
        replicas = 0
    return replace(
        example.app(replicas),
        paused=desired is WishState.PAUSED,
        dry_run=desired is WishState.DRY_RUN,
        fault="spec.applicationId is empty" if desired is WishState.INVALID else None,
    )


def _record(hold: HoldState, pods: int) -> HoldRecord | None:
    """A record as it would stand there; the open step's pod and members are gone already."""
    if hold is HoldState.NONE:
        return None
    since = example.NOW - 60 * example.SECOND
    held = Hold(
        id="h-1",
        from_replicas=pods + 1,
        target=pods - 1,
        granted=pods + 2 if hold is HoldState.LEFT_OVER else pods,
        since=since,
        reason=Reason.ReadingsPending,
        progress=Progress(improved_at=since),
        generation=1,
    )
    step = OpenStep(hold_id="h-1", from_replicas=pods + 1, to_replicas=pods, granted_at=since, reason=Reason.Covered)
    return HoldRecord(epoch=Epoch(lease=0, counter=1), hold=held, step=step if hold is HoldState.STEP else None)


def _agents(members: tuple[Member, ...], hold: HoldState) -> AgentsSeen:
    """In an open hold all have heard that the top pod leaves, and the leader has gone by it."""
    if hold is HoldState.OPEN and len(members) > 1:
        return example.agents(members, heard=example.leaving(len(members) - 1), round=example.assigned())
    return example.agents(members)


def _members(learners: LearnerState, pods: int) -> tuple[Member, ...]:
    if learners is LearnerState.DRAINED and pods > 1:
        return (*example.members(pods - 1, standbys=False), example.member(pods - 1))
    lag = {LearnerState.CATCHING_UP: 500_000, LearnerState.LEARNING: 500_000, LearnerState.UNKNOWN: None}.get(
        learners, 0
    )
    return example.members(pods, lag=lag, standbys=learners is not LearnerState.NONE)


def _seen(reading: GroupReading, group: GroupCondition) -> GroupReading:
    if not isinstance(reading.group, GroupDescription):
        return reading
    members = reading.group.members
    match group:
        case GroupCondition.REBALANCING:
            # The broker shows subscriptions only while the group is stable.
            hidden = tuple(replace(member, subscription=None) for member in members)
            return replace(reading, group=GroupDescription(GroupState.PREPARING_REBALANCE, hidden), rebalance=None)
        case GroupCondition.UNREACHABLE:
            return replace(reading, group=GroupUnreadable(Reason.BrokersUnreachable, "timed out"), rebalance=None)
        case GroupCondition.FOREIGN:
            stranger = replace(example.member(7), id="stranger", client_host="10.9.9.9")
            return replace(reading, group=GroupDescription(GroupState.STABLE, (*members, stranger)))
    return reading
