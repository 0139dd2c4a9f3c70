"""Plays a change of the replicas in a group of the streams protocol, where the brokers assign, in every way.

Pods that are added get their share at once and without a copy. Pods that are removed leave one by one. If the brokers
would move a task of the next pod cold in any way, the operator first waits for standbys that are behind. Then it raises
the standbys of the group by one, twice at most. All ways go through the same steps: the operator knows them no better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamapp.core.assignors.group import Assignment, Copy
from streamapp.core.facts.ids import ProcessId
from streamapp.simulator.broker.group import BrokerGroup, GroupMember
from streamapp.simulator.broker.ways import Way, ways
from streamapp.simulator.forecast.change import Brokers, Settings
from streamapp.simulator.forecast.running import Running
from streamapp.simulator.forecast.times import GAP_SECONDS, HandoverGap, Spread
from streamapp.simulator.rounds import Answer, Cause, Pace, Play, Round, play
from streamapp.simulator.world import Instance, Rates, World

RAISE_SECONDS = 10.0
"""From the wait for a copy until the brokers have placed standbys: two looks, two writes, a heartbeat; an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPlays:
    """What came of the change."""

    by_way: tuple[tuple[Play, ...], ...]
    standbys: int
    """The most standbys of a task meanwhile."""
    at_rest: int
    """Those afterwards."""
    raises: int


@dataclass(slots=True)
class _Course:
    """One way: the group and the world so far, and the plays that led there."""

    group: BrokerGroup
    world: World
    plays: list[Play]
    pace: Pace

    def deal(self, group: BrokerGroup, cause: Cause) -> None:
        """Bring the members to these targets."""
        answer = Answer(Assignment(placements=group.placements()), None, cause, is_target=True)
        made = play(self.world, lambda _tasks, _clients: answer, self.pace, cause)
        self.group, self.world = group, made.world
        self.plays.append(made)

    def raise_standbys(self, count: int) -> None:
        """Have the brokers place so many standbys of each task."""
        self.deal(self.group.with_standbys(count), Cause.STANDBYS)
        made = self.plays.pop()
        rounds = tuple(replace(one, seconds=one.seconds + RAISE_SECONDS) for one in made.rounds)
        self.plays.append(replace(made, rounds=rounds))

    def behind(self) -> frozenset[Copy]:
        """The standbys that have not caught up."""
        return frozenset(
            Copy(task, name)
            for name, one in self.world.instances.items()
            for task in one.standbys & self.world.ends.keys()
            if self.world.lag(one, task) > self.pace.acceptable_lag
        )

    def catch_up(self) -> None:
        """Wait until no standby is behind."""
        copies, placements = self.behind(), self.group.placements()
        seconds = self.world.seconds_until_caught_up(copies, self.pace.acceptable_lag, self.pace.rates)
        wanted = Assignment(placements=placements, learners=copies)
        behind = Round(seconds=0.0, cause=Cause.BEHIND, wanted=wanted, given=placements)
        self.world = self.world.after(seconds, self.pace.rates)
        rounds = behind, replace(behind, seconds=seconds, cause=Cause.CAUGHT_UP)
        self.plays.append(Play(rounds, self.world, is_over=True))

    def would_move_cold(self, after: BrokerGroup) -> bool:
        """Tell whether a stateful task would go to a process that is not caught up."""
        owners = self.world.owners()
        return any(
            owners.get(task) != process
            and self.world.lag(self.world.instances[process], task) > self.pace.acceptable_lag
            for process, placed in after.placements().items()
            for task in placed.actives & self.world.ends.keys()
        )


def streams_plays(app: Running, to: int, settings: Settings, brokers: Brokers, restore: float) -> StreamsPlays:
    """The rounds of the change, each play beginning when members or the standbys of the group change.

    Args:
        app: The application before the change, with its streams group.
        to: Replicas after it.
        settings: How it assigns.
        brokers: The same, of its brokers.
        restore: Records a second of one process.
    """
    pace = Pace(
        rates=Rates(restore=restore),
        acceptable_lag=float(app.limit),
        handover_seconds=brokers.heartbeat_seconds,
    )
    courses = [_begun(app, way, settings, pace) for way in _ways(app, to, settings, brokers)]
    if to >= app.current:
        for course in courses:
            _grow(course, app, to, settings)
        return _summed_up(courses, settings.standbys, settings.standbys, 0)
    standbys = settings.standbys
    for ordinal in reversed(range(to, app.current)):
        standbys = _shrink(courses, app.processes[ordinal], standbys, _limit(ordinal + 1, brokers))
    at_rest = min(brokers.at_rest, settings.standbys)
    if standbys != at_rest:
        for course in courses:
            course.deal(course.group.with_standbys(at_rest), Cause.STANDBYS)
    return _summed_up(courses, standbys, at_rest, standbys - settings.standbys)


def _summed_up(courses: Sequence[_Course], standbys: int, at_rest: int, raises: int) -> StreamsPlays:
    by_way = tuple(tuple(one.plays) for one in courses)
    return StreamsPlays(by_way=by_way, standbys=standbys, at_rest=at_rest, raises=raises)


def handover_gap(is_growing: bool, threads: int, brokers: Brokers) -> Spread:
    """How long the users of a task wait while it is handed over to a caught-up copy.

    Args:
        is_growing: Whether pods are added.
        threads: Stream threads of a pod.
        brokers: How often members report, and how often the brokers assign.
    """
    if is_growing:
        base = GAP_SECONDS[HandoverGap.ARRIVAL_CAPPED if brokers.is_capped else HandoverGap.ARRIVAL]
        more = brokers.interval_seconds if threads > 1 else 0.0
        return Spread(base.p10 + more, base.p50 + more, base.p90 + more)
    base = GAP_SECONDS[HandoverGap.DEPARTURE_CAPPED if brokers.is_capped else HandoverGap.DEPARTURE]
    return replace(base, p90=base.p90 + brokers.interval_seconds)


def _ways(app: Running, to: int, settings: Settings, brokers: Brokers) -> tuple[Way, ...]:
    """The ways of this change; with one release to choose from where nothing has a standby."""
    threads = max((one.threads for one in app.world.instances.values()), default=1)
    added = max(0, to - app.current) * settings.threads
    together = added or threads
    changes = added or (app.current - to) * threads
    has_copies = max(settings.standbys, brokers.most) > 0
    releases = brokers.releases if has_copies else brokers.releases[:1]
    return ways(releases, max(1, together), len(app.world.tasks) * max(1, changes))


def _begun(app: Running, way: Way, settings: Settings, pace: Pace) -> _Course:
    """The group as it is; with the standbys that are asked for, caught up, where these are not what it has."""
    streams = app.streams
    if streams is None:
        raise ValueError("a group of the classic protocol is not assigned by its brokers")
    members = {
        one.id: GroupMember(
            id=one.id,
            process=app.processes[int(one.ordinal)],
            actives=one.actives,
            standbys=one.standbys,
            offsets=one.offsets,
        )
        for one in streams.members
        if one.ordinal is not None
    }
    group = BrokerGroup(way=way, tasks=app.world.tasks, members=members, standbys=settings.standbys)
    course = _Course(group, app.world, [], pace)
    if streams.standbys is not None and streams.standbys.now != settings.standbys:
        group = group.with_standbys(settings.standbys)
        course = _Course(group, _caught_up(app.world.given(group.placements())), [], pace)
    return course


def _caught_up(world: World) -> World:
    """The group when all that it has copies of has caught up."""
    instances = {
        name: replace(
            one,
            positions={
                **one.positions,
                **{task: world.ends[task] for task in (one.actives | one.standbys) & world.ends.keys()},
            },
        )
        for name, one in world.instances.items()
    }
    return replace(world, instances=instances)


def _grow(course: _Course, app: Running, to: int, settings: Settings) -> None:
    added = range(app.current, to)
    joining = [
        GroupMember(
            # A thread has the ID of its member when it joins. Before, any name is as good as another one.
            id=f"pod {ordinal}, thread {thread}",
            process=app.processes[ordinal],
            offsets={task: round(at) for task, at in app.kept.get(ordinal, {}).items()} if thread == 0 else {},
        )
        for ordinal in added
        for thread in range(settings.threads)
    ]
    instances = [
        Instance(process=app.processes[at], threads=settings.threads, positions=app.kept.get(at, {})) for at in added
    ]
    course.world = course.world.joined_by(*instances)
    course.deal(course.group.joined_by(joining) if joining else course.group, Cause.MEMBERSHIP)


def _limit(pods: int, brokers: Brokers) -> int:
    """How many standbys the operator would raise the group to while it has so many pods."""
    return min(brokers.most, pods - 1)


def _shrink(courses: Sequence[_Course], leaving: ProcessId, standbys: int, most: int) -> int:
    """Let one pod go; give how many standbys there are then.

    While a task would move cold in any way, the operator waits for standbys that are behind, and then raises them.
    """
    after = [course.group.left_by(leaving) for course in courses]
    while _any_cold(courses, after):
        waiting = [course for course in courses if course.behind()]
        if not waiting and standbys >= most:
            break
        for course in waiting:
            course.catch_up()
        if not waiting:
            standbys += 1
            for course in courses:
                course.raise_standbys(standbys)
            after = [course.group.left_by(leaving) for course in courses]
    for course, left in zip(courses, after, strict=True):
        course.world = course.world.left_by([leaving])
        course.deal(left, Cause.MEMBERSHIP)
    return standbys


def _any_cold(courses: Sequence[_Course], after: Sequence[BrokerGroup]) -> bool:
    return any(course.would_move_cold(left) for course, left in zip(courses, after, strict=True))
