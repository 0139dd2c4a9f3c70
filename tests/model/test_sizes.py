"""Even sizes are what the stock assignor makes even."""

from collections import Counter

import pytest

from streamapp.core.assignors.group import ClientState, Task
from streamapp.core.facts.ids import TaskId
from streamapp.simulator import stock
from streamapp.simulator.sizes import even_sizes, even_sizes_of_brokers, nearest_even
from tests.model.replays.scenes import ordered_id

SUBTOPOLOGIES = {0: (12, False), 1: (24, True), 2: (12, True)}


def tasks_of(subtopologies: dict[int, tuple[int, bool]]) -> list[Task]:
    return [
        Task(TaskId(number, partition), is_stateful)
        for number, (partitions, is_stateful) in subtopologies.items()
        for partition in range(partitions)
    ]


TASKS = tasks_of(SUBTOPOLOGIES)


@pytest.mark.parametrize(
    ("subtopologies", "standbys", "most", "sizes"),
    [
        ({0: (12, True)}, 0, None, (1, 2, 3, 4, 6, 12)),
        ({0: (12, True)}, 1, None, (2, 3, 4, 6, 12)),
        ({0: (12, False)}, 1, None, (1, 2, 3, 4, 6, 12)),
        ({0: (12, True), 1: (8, True)}, 2, None, (4,)),
        ({0: (12, True)}, 0, 5, (1, 2, 3, 4)),
        ({0: (6, True), 1: (7, False)}, 1, None, ()),
        ({}, 0, None, ()),
    ],
)
def test_even_sizes_divide_every_sub_topology_and_have_room_for_the_copies(
    subtopologies: dict[int, tuple[int, bool]], standbys: int, most: int | None, sizes: tuple[int, ...]
) -> None:
    assert even_sizes(tasks_of(subtopologies), standbys, most) == sizes


def spread(size: int, standbys: int) -> tuple[set[tuple[int, ...]], set[int]]:
    """Actives by sub-topology of each process, and standbys of each process."""
    clients = [ClientState(process=ordered_id(number), lags={task.id: 0 for task in TASKS}) for number in range(size)]
    placements = stock.assign(TASKS, clients, stock.StockSettings(num_standby_replicas=standbys)).placements.values()
    counts = [Counter(task.subtopology for task in placed.actives) for placed in placements]
    return {tuple(count[number] for number in SUBTOPOLOGIES) for count in counts}, {
        len(placed.standbys) for placed in placements
    }


@pytest.mark.parametrize("standbys", [0, 1, 2])
def test_at_an_even_size_the_stock_assignor_gives_every_process_the_same(standbys: int) -> None:
    sizes = even_sizes(TASKS, standbys)
    assert sizes == tuple(size for size in (1, 2, 3, 4, 6, 12) if size > standbys)
    for size in sizes:
        shares = (12 // size, 24 // size, 12 // size)
        assert spread(size, standbys) == ({shares}, {36 * standbys // size})


def test_at_another_size_it_does_not() -> None:
    assert len(spread(5, 0)[0]) > 1


@pytest.mark.parametrize(("replicas", "near"), [(1, (None, 2)), (5, (4, 6)), (6, (6, 6)), (13, (12, None))])
def test_the_nearest_even_sizes_are_named(replicas: int, near: tuple[int | None, int | None]) -> None:
    assert nearest_even((2, 4, 6, 12), replicas) == near


@pytest.mark.parametrize(
    ("standbys", "threads", "sizes"),
    [(0, 1, (1, 2, 3, 4, 6, 12)), (2, 1, (3, 4, 6, 12)), (0, 2, (1, 2, 3, 6)), (0, 5, ())],
)
def test_brokers_are_even_where_each_thread_has_as_many_tasks(
    standbys: int, threads: int, sizes: tuple[int, ...]
) -> None:
    tasks = tasks_of({0: (5, False), 1: (7, True)})
    assert even_sizes_of_brokers(tasks, standbys, threads) == sizes
