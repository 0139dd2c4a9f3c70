"""What the judge asks of a restart without standbys: no other pod has the tasks of the pod, so all of them run before.

Then no task is away for two restarts at once. One look is enough, since no copy has to be believed; it is fresh, and
each container that ran a task is still shown as running to whoever restarts the next pod.
"""

from collections.abc import Iterable

from streamapp.core.facts.ids import TaskId
from tests.prove.looks import FRESH, Seen


def tasks_away(seen: Seen, tasks: Iterable[TaskId]) -> str | None:
    """Say what is wrong with a restart, if anything is: no look of that process shows each task running.

    Args:
        seen: What the process was told.
        tasks: All tasks.
    """
    fresh = [look for look in seen.looks if look.is_stable and seen.statefulset_at - look.at <= FRESH]
    if not fresh:
        return "without a look that is fresh and stable"
    shown = seen.containers
    away = [
        sorted(str(task) for task in tasks if not any(shown is None or run in shown for _, run, _ in look.good[task]))
        for look in fresh
    ]
    least = min(away, key=len)
    return f"although {', '.join(least)} ran nowhere" if least else None
