"""Numbers of replicas at which the tasks of every sub-topology divide evenly.

At such a size each process has as many actives of each sub-topology, and as many standbys, so none is the slowest.
"""

from collections import Counter
from collections.abc import Iterable
from math import gcd

from streamapp.core.assignors.group import Task


def even_sizes(tasks: Iterable[Task], num_standby_replicas: int = 0, most: int | None = None) -> tuple[int, ...]:
    """Return the even sizes, smallest first.

    A size must divide the number of partitions of every sub-topology, and have a process for each copy of a task.
    All processes have the same number of threads.

    Args:
        tasks: all tasks of the application.
        num_standby_replicas: standbys of each stateful task.
        most: the largest size that is asked for.
    """
    known = list(tasks)
    counts = Counter(task.id.subtopology for task in known)
    largest = gcd(*counts.values())
    copies = 1 + num_standby_replicas if any(task.is_stateful for task in known) else 1
    return tuple(
        size for size in range(copies, min(largest, largest if most is None else most) + 1) if largest % size == 0
    )


def even_sizes_of_brokers(tasks: Iterable[Task], num_standby_replicas: int, threads: int) -> tuple[int, ...]:
    """Return the sizes at which brokers give each member as many tasks, smallest first.

    They count the tasks of all sub-topologies together, and deal them by thread.

    Args:
        tasks: all tasks of the application.
        num_standby_replicas: standbys of each stateful task.
        threads: stream threads of a pod.
    """
    known = list(tasks)
    copies = 1 + num_standby_replicas if any(task.is_stateful for task in known) else 1
    return tuple(size for size in range(copies, len(known) + 1) if len(known) % (size * threads) == 0)


def nearest_even(sizes: Iterable[int], replicas: int) -> tuple[int | None, int | None]:
    """The next even size below or at a number of replicas, and the next one above or at it."""
    known = sorted(sizes)
    below = max((size for size in known if size <= replicas), default=None)
    above = min((size for size in known if size >= replicas), default=None)
    return below, above
