"""The prediction of a streams group's moves beside a real broker: random departures, none of which surprises.

The members are no JVMs: they heartbeat, and report nothing. So the coordinator, its assignor and its hash tables are
real, also as they are after many members have come and gone, which no model of one assignment has.
"""

import asyncio
import os
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest

from lab.matrix.broker import Broker
from lab.settings import Settings
from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.apps.kafka_group import connect
from streamapp.controller.ports import ApplicationGroup
from streamapp.core.assignors.broker_moves import AssignorUnknown, Moves, moves_without
from streamapp.core.facts.group import GroupDescription, GroupState, StandbySetting
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.core.facts.tasks import TaskSet
from tests.brokers.streams_members import Shape, WireGroup, wire_group
from tests.brokers.streams_pair import actives, running_broker
from tests.support.group_asked import DEADLINE

pytestmark = [pytest.mark.brokers, pytest.mark.timeout(580)]

BROKERS = os.environ.get("STREAMS_BROKERS", Settings.from_environment().versions.broker).split()
STEPS = int(os.environ.get("STREAMS_STEPS", "40"))
MOST_PROCESSES = 6
ROUNDS = 400
SHAPE = Shape("moves", "moves-words", "moves-lines")


@pytest.fixture(scope="module", params=BROKERS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Give a broker of each version in turn."""
    with running_broker(request.param, tmp_path_factory.mktemp("broker")) as one:
        one.create(SHAPE.stateful_source, SHAPE.stateless_source)
        yield one


@dataclass
class Seen:
    """What the departures brought."""

    unpredicted: list[str] = field(default_factory=list)
    moves: Counter[str] = field(default_factory=Counter)


async def settled(one: ApplicationGroup, members: WireGroup, standbys: int) -> GroupDescription:
    """Heartbeat until every member has its target, under this setting."""
    knows_setting = False
    for _ in range(ROUNDS):
        while await members.round():
            pass
        group = (await one.describe()).group
        if isinstance(group, GroupDescription) and group.streams is not None:
            found = (group.state, group.unsettled, len(group.members))
            if knows_setting and found == (GroupState.STABLE, "", len(members.members)):
                return group
            # The heartbeats that follow are those at which the coordinator goes by it.
            knows_setting = group.streams.standbys == StandbySetting(standbys, is_set=True)
        await asyncio.sleep(0.02)
    raise AssertionError(f"the group does not settle: {group}")


def owners(group: GroupDescription) -> dict[TaskId, ProcessId | None]:
    return {task: member.process_id for member in group.members for task in actives(member)}


def holders(group: GroupDescription, task: TaskId) -> set[ProcessId | None]:
    return {one.process_id for one in group.members if one.assignment is not None and task in one.assignment.standby}


async def random_steps(bootstrap: str, random: Random) -> Seen:
    """Let processes join and leave, and judge each departure by what was predicted right before it."""
    seen, standbys = Seen(), 1
    one = connect(ClusterAccess(bootstrap, (), SHAPE.group_id, ""), DEADLINE)
    try:
        async with wire_group(bootstrap, SHAPE, random) as members:
            await members.reach_coordinator()
            await members.assign_at_once()
            members.start(str(uuid.UUID(int=random.getrandbits(128))), 2)
            await members.round()
            for _ in range(STEPS):
                while len(members.processes) < random.randint(2, MOST_PROCESSES):
                    members.start(str(uuid.UUID(int=random.getrandbits(128))), random.choice((1, 1, 2)))
                if random.random() < 1 / 5:
                    standbys = random.choice((0, 1, 1, 2))
                await one.describe()
                await one.set_standbys(standbys)
                before = await settled(one, members, standbys)
                task_set = await one.task_set()
                assert isinstance(task_set, TaskSet), task_set
                leaving = random.choice(list(members.processes))
                gone = frozenset(member.id for member in members.processes[leaving])
                predicted = moves_without(before, task_set, gone)
                assert not isinstance(predicted, AssignorUnknown), predicted
                await members.stop(leaving)
                judge(seen, before, await settled(one, members, standbys), predicted, task_set)
    finally:
        one.close()
    return seen


def judge(seen: Seen, before: GroupDescription, after: GroupDescription, predicted: Moves, task_set: TaskSet) -> None:
    """Count the tasks that moved, and note those that went where no play put them."""
    held = owners(before)
    seen.moves["departures"] += 1
    for task, process in owners(after).items():
        if process == held[task]:
            continue
        places = predicted.get(task, frozenset())
        is_stateful = task in task_set.stateful_ids
        is_warm = process in holders(before, task)
        seen.moves["stateless" if not is_stateful else "warm" if is_warm else "cold"] += 1
        if process not in places:
            seen.unpredicted.append(f"{task} from {held[task]} to {process}, predicted {sorted(map(str, places))}")
        elif is_stateful and places <= holders(before, task):
            seen.moves["said to be warm"] += 1


def test_no_task_goes_where_no_play_put_it(broker: Broker, request: pytest.FixtureRequest) -> None:
    seen = asyncio.run(random_steps(broker.bootstrap, Random(20)))  # noqa: S311 - the same steps in every run
    print(f"{request.node.name}: {dict(seen.moves)}")  # noqa: T201
    assert seen.unpredicted == []
    assert seen.moves["departures"] == STEPS
    assert min(seen.moves[kind] for kind in ("cold", "warm", "said to be warm")) > STEPS / 20
