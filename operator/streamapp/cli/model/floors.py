"""What `scaleDown.minCopies` and `scaleDown.minZones` make of new desired replicas, in sentences. Pure."""

from collections.abc import Iterator, Mapping
from itertools import takewhile

from streamapp.api.validation.parse import StreamApp
from streamapp.cli.model.app_view import AppView
from streamapp.cli.model.phrases import counted
from streamapp.core.evidence.capacity.floors import least_pods
from streamapp.core.facts.ids import TaskId
from streamapp.simulator.forecast.outcome import Outcome, Step
from streamapp.simulator.forecast.running import Running
from streamapp.simulator.rounds import Cause


def zones_of(view: AppView) -> Mapping[int, str]:
    """The zone of each pod, as the status has it; a pod of an unknown zone is missing."""
    return {member.ordinal: member.zone for member in view.status.members if member.zone is not None}


def about_pods(view: AppView, current: int, to: int) -> Iterator[str]:
    """Where the operator stops because of the pods that there are, whatever the tasks do.

    Args:
        view: The StreamApp.
        current: The replicas of the StatefulSet.
        to: The new desired replicas.
    """
    app = view.streamapp
    if not isinstance(app, StreamApp) or not 0 < to < current:
        return
    asked, zones = app.spec.scale_down, zones_of(view)
    least = least_pods(asked.min_copies, asked.min_zones, [zones.get(ordinal, "") for ordinal in range(current)])
    if to >= least:
        return
    names = [f"`{name}: {value}`" for name, value in _floors(app) if value is not None]
    where = f"at {counted(min(least, current), 'pod')}"
    yield f"The scale-down stops {where}, by {' and '.join(names)} of `scaleDown`: the lowest ordinals remain."


def about_tasks(view: AppView, places: Mapping[TaskId, frozenset[int]]) -> Iterator[str]:
    """Which tasks would have fewer copies, or copies in fewer zones, than the user asks for.

    Args:
        view: The StreamApp.
        places: The pods with a copy of each stateful task right after a removal.
    """
    app = view.streamapp
    if not isinstance(app, StreamApp):
        return
    asked, zones = app.spec.scale_down, zones_of(view)
    few = [task for task, pods in places.items() if len(pods) < (asked.min_copies or 0)]
    if few:
        yield _held(few, "fewer copies than `scaleDown.minCopies` asks for")
    near = [
        task for task, pods in places.items() if len({zones.get(pod, pod) for pod in pods}) < (asked.min_zones or 0)
    ]
    if near:
        yield _held(near, "copies in fewer zones than `scaleDown.minZones` asks for")
    unknown = sorted({pod for pods in places.values() for pod in pods} - zones.keys())
    if asked.min_zones is not None and unknown:
        yield f"The zone of pod {', '.join(map(str, unknown))} is unknown, and `scaleDown.minZones` needs it."


def places_after(app: Running, chosen: Outcome, *, is_drained: bool) -> Mapping[TaskId, frozenset[int]]:
    """The pods with a copy of each stateful task right after a removal.

    A pod that is drained first leaves what the assignor has made by then. Without draining, what counts is the layout
    before, less the highest pod: standbys are replaced only after it has left. Standbys that the operator raises before
    are part of it.

    Args:
        app: The application before the change.
        chosen: What the assignor makes of a scale-down.
        is_drained: Whether pods are drained before they leave.
    """
    ordinals, prepared = app.ordinals(), list(takewhile(lambda one: one.cause is not Cause.MEMBERSHIP, chosen.steps))
    if is_drained:
        held = _held_after(chosen.steps[-1])
    else:
        layout = {ordinals[process]: one.actives | one.standbys for process, one in app.world.instances.items()}
        layout = _held_after(prepared[-1]) if prepared else layout
        held = {ordinal: tasks for ordinal, tasks in layout.items() if ordinal < app.current - 1}
    return {task: frozenset(pod for pod, tasks in held.items() if task in tasks) for task in app.world.ends}


def _held_after(step: Step) -> dict[int, frozenset[TaskId]]:
    return {ordinal: tasks | step.copies.get(ordinal, frozenset()) for ordinal, tasks in step.active.items()}


def _floors(app: StreamApp) -> tuple[tuple[str, int | None], ...]:
    return ("minCopies", app.spec.scale_down.min_copies), ("minZones", app.spec.scale_down.min_zones)


def _held(tasks: list[TaskId], what: str) -> str:
    verb = "has" if len(tasks) == 1 else "have"
    return f"The operator holds this scale-down while {counted(len(tasks), 'task')} {verb} {what} ({min(tasks)})."
