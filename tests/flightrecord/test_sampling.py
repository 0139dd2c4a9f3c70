"""Which copies get a sample: the laws of it, over any sequence of looks."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.core.facts.agent_reports import TaskState
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import EndOffsets
from streamapp.flightrecord.copies import UNKNOWN_POSITION, ObservedCopy, Position
from streamapp.flightrecord.sampling import BEHIND, HEARTBEAT, LONGEST, MOST_AT_ONCE, SHORTEST, ChosenSample, Sampler
from streamapp.flightrecord.schema import Role, SampleSource
from tests.support.example import NOW, process_id

LIMIT = 1_000
NO_ENDS = EndOffsets(read_at=NOW, partitions={}, committed={})
Shown = tuple[tuple[Role, TaskState | None], int, int | None]
"""Role with state, process, lag where it is known."""
Looks = list[tuple[float, Shown | None]]
"""At one copy: the pause before, and what it shows; None: it is not there."""
WELL: Shown = ((Role.STANDBY, None), 0, 0)
RARE = (
    None,
    ((Role.STANDBY, None), 1, 0),
    ((Role.LEARNER, None), 0, 500),
    ((Role.ACTIVE, TaskState.RESTORING), 0, 5_000),
    ((Role.ACTIVE, TaskState.RUNNING), 0, None),
    ((Role.ACTIVE, None), 0, None),
)
lags = st.sampled_from([0, 50, 99, 101, 500, 1_000, 1_001, 5_000, None])
standby = lags.map(lambda lag: (WELL[0], WELL[1], lag))
shown = st.integers(0, 7).flatmap(lambda which: standby if which else st.sampled_from(RARE))
sequences = st.lists(st.tuples(st.floats(0.5, 40), shown), min_size=2, max_size=40)


def copy(task: int, at: datetime, one: Shown) -> ObservedCopy:
    (role, state), process, told = one
    return ObservedCopy(
        *(TaskId(0, task), Ordinal(task), process_id(process), role, state, at, SampleSource.AGENT, told, at, NO_ENDS)
    )


def lag_of(copy: ObservedCopy) -> Position:
    """Here the sum that is told is the lag itself."""
    assert isinstance(copy.positions, int)
    return Position(copy.positions, copy.positions)


def played(looks: Looks) -> Iterator[tuple[ObservedCopy | None, ChosenSample | None]]:
    sampler, at = Sampler(), NOW
    for pause, one in looks:
        at += timedelta(seconds=pause)
        seen = [] if one is None else [copy(0, at, one)]
        taken = sampler.choose(seen, LIMIT, lag_of)
        yield (seen[0] if seen else None), (taken[0] if taken else None)


@dataclass
class OnRecord:
    """What a reader of the samples knows of the copy."""

    taken: ChosenSample
    lag: int | None

    @classmethod
    def after(cls, before: "OnRecord | None", taken: ChosenSample) -> "OnRecord":
        lag = taken.position.lag
        if lag is None and before is not None and before.taken.copy.process == taken.copy.process:
            lag = before.lag
        return cls(taken, lag)


@given(sequences)
@settings(max_examples=300)
def test_whoever_is_behind_has_samples_and_one_when_it_has_caught_up(looks: Looks) -> None:
    known: OnRecord | None = None
    for seen, taken in played(looks):
        if taken is not None:
            known = OnRecord.after(known, taken)
        if seen is None:
            known = None
            continue
        assert known is not None
        copy, told = known.taken.copy, seen.positions
        assert (copy.process, copy.role) == (seen.process, seen.role)
        assert seen.state in {None, copy.state}
        if isinstance(told, int) and told > BEHIND * LIMIT:
            assert seen.at - known.taken.at < LONGEST, "it is behind, and nobody looked"
        if isinstance(told, int) and known.lag is not None:
            assert (known.lag <= LIMIT) is (told <= LIMIT), "what is on record says otherwise"


@given(sequences)
@settings(max_examples=300)
def test_nothing_that_did_not_change_is_sampled_sooner_than_was_said(looks: Looks) -> None:
    known: OnRecord | None = None
    for seen, taken in played(looks):
        if taken is not None and known is not None:
            assert taken.at > known.taken.at
            assert has_changed(known, taken) or taken.at - known.taken.at >= known.taken.interval
        if taken is not None:
            assert SHORTEST <= taken.interval <= 1.5 * HEARTBEAT + timedelta(seconds=1)
            known = OnRecord.after(known, taken)
        if seen is None:
            known = None


def has_changed(known: OnRecord, now: ChosenSample) -> bool:
    was, lag = known.taken.copy, now.position.lag
    if (was.process, was.role) != (now.copy.process, now.copy.role) or now.copy.state not in {None, was.state}:
        return True
    if lag is None:
        return False
    crossed = known.lag is not None and (lag <= LIMIT) is not (known.lag <= LIMIT)
    fell_behind = lag > BEHIND * LIMIT and (known.lag or 0) <= BEHIND * LIMIT
    return crossed or (fell_behind and now.at - known.taken.at >= SHORTEST)


@given(st.lists(st.floats(0.5, 4), min_size=20, max_size=120), st.integers(101, 5_000))
def test_a_copy_that_is_behind_is_seen_often(pauses: list[float], lag: int) -> None:
    times = [taken.at for _, taken in played([(pause, (WELL[0], 0, lag)) for pause in pauses]) if taken is not None]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(SHORTEST <= gap <= LONGEST for gap in gaps)
    assert gaps or sum(pauses) < 2 * LONGEST.total_seconds()


def test_a_copy_that_was_behind_is_seen_once_more_and_then_rarely() -> None:
    looks: Looks = [(2.0, (WELL[0], 0, lag)) for lag in [5_000] + [0] * 100]
    taken = [one for _, one in played(looks) if one is not None]
    assert [one.position.lag for one in taken][:2] == [5_000, 0]
    assert taken[1].at - taken[0].at == timedelta(seconds=2)
    assert taken[1].interval > HEARTBEAT / 2


def test_copies_that_are_well_are_seen_every_five_minutes_those_of_a_process_at_once_and_not_all() -> None:
    sampler, at = Sampler(), NOW
    times: dict[TaskId, list[datetime]] = defaultdict(list)
    most = 0
    shown = [(task, (WELL[0], task % 20, 0)) for task in range(100)]
    for look in range(600):
        at += timedelta(seconds=2)
        taken = sampler.choose([copy(task, at, one) for task, one in shown], LIMIT, lag_of)
        most = max(most, len({one.copy.process for one in taken}) if look else 0)
        assert len(taken) == 5 * len({one.copy.process for one in taken})
        assert len({one.interval for one in taken}) <= len({one.copy.process for one in taken})
        for one in taken:
            times[one.copy.task].append(one.at)
    for seen in times.values():
        steady = [later - earlier for earlier, later in pairwise(seen[1:])]
        assert steady
        assert all(abs(gap - HEARTBEAT) <= timedelta(seconds=2) for gap in steady)
    assert most <= 3


def test_of_very_many_all_have_their_turn_the_changed_ones_first() -> None:
    sampler, count = Sampler(), MOST_AT_ONCE + 500
    seen: set[TaskId] = set()
    for look in range(3):
        at = NOW + timedelta(seconds=2 * look)
        taken = sampler.choose([copy(task, at, WELL) for task in range(count)], LIMIT, lag_of)
        assert len(taken) == (MOST_AT_ONCE, 500, 0)[look]
        assert sampler.has_more is (look == 0)
        assert not seen & {one.copy.task for one in taken}
        seen |= {one.copy.task for one in taken}
    assert len(seen) == count
    late = NOW + 2 * HEARTBEAT
    later = {task: WELL if task < count - 5 else ((Role.LEARNER, None), 0, 0) for task in range(count)}
    taken = sampler.choose([copy(task, late, one) for task, one in later.items()], LIMIT, lag_of)
    assert {count - 5, count - 1} <= {one.copy.task.partition for one in taken}


def test_two_members_of_one_pod_make_one_copy() -> None:
    one = copy(0, NOW, WELL)
    assert len(Sampler().choose([one, one], LIMIT, lag_of)) == 1


def test_that_a_task_runs_is_told_at_once() -> None:
    restoring: Shown = ((Role.ACTIVE, TaskState.RESTORING), 0, 50)
    running: Shown = ((Role.ACTIVE, TaskState.RUNNING), 0, None)
    states = [None if taken is None else taken.copy.state for _, taken in played([(1.0, restoring), (1.0, running)])]
    assert states == [TaskState.RESTORING, TaskState.RUNNING]


def test_positions_of_a_join_are_recorded_once_and_later_looks_say_only_that_the_copy_is_there() -> None:
    sampler = Sampler()
    first = copy(0, NOW, (WELL[0], 0, 5_000))
    assert [one.position.lag for one in sampler.choose([first], LIMIT, lag_of)] == [5_000]
    taken: list[ChosenSample] = []
    for seconds in range(2, 400, 2):
        taken += sampler.choose([first._replace(at=NOW + timedelta(seconds=seconds))], LIMIT, lag_of)
    assert [one.position for one in taken] == [UNKNOWN_POSITION]
    assert taken[0].at - NOW >= HEARTBEAT / 2
