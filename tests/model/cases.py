"""Random cases for the assignors, as the JSON that the Java reference reads, and the same as values of the model."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any
from uuid import UUID

from streamapp.core.assignors.group import RUNNING, UNKNOWN, ClientState, Task
from streamapp.core.facts.ids import ProcessId, TaskId

Case = dict[str, Any]

END = 100_000
"""Records in the changelogs of every task."""
LIMITS = (0, 10, 10_000, 2**63 - 1)


def process_ids(random: Random, count: int) -> list[str]:
    """Random IDs, or IDs in the order of ordinals as the operator seeds them."""
    if random.random() < 0.3:
        return [f"00000000-0000-4000-8000-{ordinal:012x}" for ordinal in range(count)]
    return [str(UUID(int=random.getrandbits(128), version=4)) for _ in range(count)]


def tasks(random: Random, *, is_weighted: bool) -> Case:
    """One to three sub-topologies, in Kafka's order; by task, whether it is stateful, and its weight."""
    found: Case = {}
    for subtopology in sorted(random.sample((0, 1, 2, 10), random.randint(1, 3))):
        is_stateful = random.random() < 0.75
        for partition in range(random.choice((1, 2, 3, 4, 6, 7, 12))):
            weight = random.choice((1, 1, 1, 2, 5)) if is_weighted else 1
            found[f"{subtopology}_{partition}"] = {"stateful": is_stateful, "weight": weight}
    return found


def clients(random: Random, known: Mapping[str, Any], limit: int) -> list[Case]:
    """Processes with what they had: evenly or at random, with copies and lags of every kind."""
    count = random.choice((1, 2, 2, 3, 3, 4, 5, 6, 8, 14))
    is_even, has_threads = random.random() < 0.5, random.random() < 0.4
    found: list[Case] = [
        {
            "process": process,
            "threads": random.randint(1, 4) if has_threads else 1,
            "actives": [],
            "copies": [],
            "lags": {},
        }
        for process in process_ids(random, count)
    ]
    owners = found[: random.randint(1, count)] if is_even else found
    orphans, copying = random.choice((0.0, 0.0, 0.2, 1.0)), random.choice((0.0, 0.2, 0.5, 0.9))
    for number, (task, kind) in enumerate(known.items()):
        if random.random() >= orphans:
            (owners[number % len(owners)] if is_even else random.choice(owners))["actives"].append(task)
        if kind["stateful"]:
            for client in found:
                _add_copy(random, client, task, limit, copying)
    random.shuffle(found)
    return found


def _add_copy(random: Random, client: Case, task: str, limit: int, copying: float) -> None:
    if task in client["actives"]:
        client["lags"][task] = RUNNING if random.random() < 0.9 else _lag(random, limit)
    elif random.random() < copying:
        client["copies"].append(task)
        client["lags"][task] = _lag(random, limit)
    else:
        client["lags"][task] = END if random.random() < 0.98 else UNKNOWN


def _lag(random: Random, limit: int) -> int:
    bound = min(limit, END)
    return random.choice((0, 0, bound, bound + 1, random.randint(0, END), END, UNKNOWN if random.random() < 0.1 else 0))


def stock_case(random: Random) -> Case:
    """A case of the stock assignor."""
    limit = random.choice(LIMITS)
    known = tasks(random, is_weighted=False)
    return {
        "tasks": known,
        "clients": clients(random, known, limit),
        "settings": {
            "acceptableRecoveryLag": limit,
            "maxWarmupReplicas": random.choice((1, 2, 2, 3, 10)),
            "numStandbyReplicas": random.choice((0, 0, 1, 1, 2, 3)),
        },
    }


def learner_case(random: Random) -> Case:
    """A case of our own assignor."""
    limit = random.choice(LIMITS)
    known = tasks(random, is_weighted=random.random() < 0.3)
    group = clients(random, known, limit)
    leaving = [one["process"] for one in group if random.random() < 0.35]
    if random.random() < 0.05:
        leaving = [one["process"] for one in group]
    for one in group:
        one["coldMillis"] = random.choice((0, 0, 0, 500, 7_000, 30_000))
    return {
        "tasks": known,
        "clients": group,
        "lagsKnown": random.random() < 0.9,
        "announcement": {
            "state": random.choice(("empty", "empty", "set", "set", "unknown")),
            "leaving": leaving,
            "eager": random.random() < 0.4,
            "expiresInMillis": random.choice((-1, 0, 30_000)),
        },
        "settings": {
            "acceptableLag": limit,
            "standbys": random.choice((0, 0, 1, 1, 2)),
            "balanceLearners": random.choice((1, 2, 2, 4, 20)),
            "leavingLearners": random.choice((1, 2, 2**31 - 1, 2**31 - 1)),
            "tolerance": random.choice((1, 1, 1, 2, 3)),
            "levelsStandbys": random.random() < 0.8,
            "followUpMillis": random.choice((100, 10_000)),
        },
    }


def sticky_case(random: Random) -> Case:
    """A case of the broker's assignor: members instead of processes."""
    subtopologies = [
        {
            "id": str(number),
            "partitions": random.choice((1, 2, 3, 4, 6, 12)),
            "stateful": random.random() < 0.75,
        }
        for number in random.sample((0, 1, 2, 10), random.randint(1, 3))
    ]
    members: list[Case] = []
    for process in process_ids(random, random.choice((1, 2, 3, 3, 4, 5, 8, 14))):
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            name = str(UUID(int=random.getrandbits(128), version=4))
            members.append({"id": name, "process": process, "actives": [], "standbys": [], "offsets": {}})
    _add_targets(random, subtopologies, members)
    return {"subtopologies": subtopologies, "members": members, "standbys": random.choice((0, 0, 1, 1, 2))}


def _add_targets(random: Random, subtopologies: Sequence[Case], members: Sequence[Case]) -> None:
    orphans, copies = random.choice((0.0, 0.1, 0.5, 1.0)), random.choice((0, 1, 2))
    owners = members[: random.randint(1, len(members))]
    number = 0
    for subtopology in subtopologies:
        for partition in range(subtopology["partitions"]):
            task, number = f"{subtopology['id']}_{partition}", number + 1
            if random.random() >= orphans:
                owners[number % len(owners)]["actives"].append(task)
            if subtopology["stateful"]:
                for holder in random.sample(members, min(copies, len(members))):
                    if task not in holder["actives"]:
                        holder["standbys"].append(task)
                for member in members:
                    if random.random() < 0.15:
                        member["offsets"][task] = random.choice((0, 10, random.randint(0, END)))


def tasks_of(case: Case) -> list[Task]:
    """The tasks as values."""
    return [Task(TaskId.parse(name), kind["stateful"], kind["weight"]) for name, kind in case["tasks"].items()]


def clients_of(case: Case) -> list[ClientState]:
    """The processes as values."""
    return [
        ClientState(
            process=ProcessId.parse(one["process"]),
            threads=one["threads"],
            actives=frozenset(map(TaskId.parse, one["actives"])),
            copies=frozenset(map(TaskId.parse, one["copies"])),
            lags={TaskId.parse(task): lag for task, lag in one["lags"].items()},
            cold_millis=one.get("coldMillis", 0),
        )
        for one in case["clients"]
    ]
