"""Places the stateless tasks: `StatelessTaskPlacement`.

They leave a leaving process at once, and even out the loads.
"""

from streamapp.simulator.learner.balance import Balancer
from streamapp.simulator.learner.draft import NONE, Draft
from streamapp.simulator.learner.room import Room


def place_stateless(draft: Draft, *, is_frozen: bool, is_balanced: bool) -> None:
    """Give every stateless task an active process; the loads are those after the learning."""
    load = list(draft.load)

    def set_target(task: int, process: int) -> None:
        if draft.target[task] != NONE:
            load[draft.target[task]] -= draft.weight(task)
        load[process] += draft.weight(task)
        draft.set_target(task, process)

    stateless = [task for task in range(len(draft.tasks)) if not draft.is_stateful(task)]
    unowned = []
    for task in stateless:
        owner = draft.owner[task]
        if owner != NONE and (is_frozen or draft.stays[owner]):
            set_target(task, owner)
        else:
            unowned.append(task)
    room = Room(draft, load, is_aimed=True)
    for task in unowned:
        set_target(task, room.find(task))
    if is_balanced:
        Balancer(draft, load, stateless, set_target).balance()
    for task in stateless:
        draft.active[task] = draft.target[task]
