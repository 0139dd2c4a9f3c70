"""What new desired replicas would cause, for people and programs: the forecasts of the model, side by side. Pure.

The layout is the operator's task table. What neither it nor the resource says is assumed, and assumptions are named.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from streamapp.api.http.build import table_from
from streamapp.api.http.messages import Tasks
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.errors import CliError
from streamapp.cli.model.amounts import Amount
from streamapp.cli.model.app_view import AppView
from streamapp.cli.model.floors import about_tasks, places_after, zones_of
from streamapp.cli.model.predictions.of_brokers import about_brokers, other_standbys, require_brokers_known
from streamapp.cli.model.scale_plan import ScalePlan, warnings
from streamapp.core.assignors.group import Task
from streamapp.core.facts.agent_reports import Rebalance
from streamapp.core.facts.policy import LearnerSource
from streamapp.core.status.task_table import TaskTable
from streamapp.simulator.forecast.basis import Basis, Given, Known, basis
from streamapp.simulator.forecast.change import LEARNER, STOCK
from streamapp.simulator.forecast.outcome import Outcome, Step, outcome
from streamapp.simulator.forecast.running import (
    BrokerAssignorUnknownError,
    LayoutUnknownError,
    Running,
    running,
)
from streamapp.simulator.sizes import even_sizes, even_sizes_of_brokers, nearest_even


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question about one StreamApp."""

    words: str
    """Of the command line: `--to 80%`."""
    amount: Amount
    given: Given
    compares: bool
    """Whether the other assignor, or other standbys of a streams group, and other numbers of replicas are played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The outcomes for one change of the desired replicas."""

    name: str
    current: int
    to: int
    stateful: int
    chosen: Outcome
    """By the assignor in use, as far as known."""
    others: tuple[Outcome, ...]
    even: tuple[int | None, int | None]
    """The nearest even sizes below and above."""
    basis: Basis
    zones: Mapping[int, str]
    """The zone of each pod there is; a pod of an unknown zone is missing."""
    doubts: tuple[str, ...]
    """What would hold the change, or may prevent it."""


def predict(view: AppView, told: Tasks, asked: Asked) -> Prediction:
    """Play the change; CliError if the layout or the assignor is not known well enough, or nothing would remain."""
    to = asked.amount.of(view.streamapp.replicas)
    current = _require_known(view, told, to)
    table = table_from(told)
    require_brokers_known(view, table, asked.given)
    sizes = _sizes(table, current, to) if asked.compares else (to,)
    app = _running(view, table, current, max(sizes))
    rests_on = basis(app, table.speeds, _known(view), asked.given)
    settings = rests_on.settings
    chosen, *others = (_outcome(app, size, rests_on) for size in sizes)
    if asked.compares:
        others[:0] = [_outcome(app, to, other) for other in _other_ways(app, table, view, asked, rests_on)]
    plan = ScalePlan(view=view, asked=asked.words, amount=asked.amount)
    return Prediction(
        name=view.name,
        current=current,
        to=to,
        stateful=len(app.world.ends),
        chosen=chosen,
        others=tuple(others),
        even=nearest_even(
            _even(app.world.tasks, settings.standbys, settings.threads if settings.brokers else None), to
        ),
        basis=rests_on,
        zones=zones_of(view),
        doubts=(*_holds(view, app, chosen), *_floors(view, app, chosen, rests_on), *warnings(plan)),
    )


def _running(view: AppView, table: TaskTable, current: int, to: int) -> Running:
    what, name = f"StreamApp {view.name}", view.streamapp.metadata.name
    try:
        return running(table, current, to, view.streamapp.metadata.uid)
    except LayoutUnknownError as error:
        raise CliError(what, str(error), f"`kubectl streamapp doctor {name}` finds the cause") from error
    except BrokerAssignorUnknownError as error:
        why = f"nothing can be predicted of what its brokers assign: {error}"
        raise CliError(what, why, "docs/streams-protocol.md has the brokers that are modelled") from error


def _other_ways(app: Running, table: TaskTable, view: AppView, asked: Asked, rests_on: Basis) -> list[Basis]:
    """The other assignor; for a group of the streams protocol the other standbys that it can have."""
    if rests_on.settings.brokers is None:
        other = LEARNER if rests_on.settings.assignor == STOCK else STOCK
        return [replace(rests_on, settings=replace(rests_on.settings, assignor=other))]
    return [
        basis(app, table.speeds, _known(view), replace(asked.given, standbys=count))
        for count in other_standbys(rests_on.settings.standbys, app.current)
    ]


def _outcome(app: Running, to: int, rests_on: Basis) -> Outcome:
    return outcome(app, to, rests_on.settings, rests_on.restore, rests_on.pauses, rests_on.gap)


def _require_known(view: AppView, told: Tasks, to: int) -> int:
    what, current = f"StreamApp {view.name}", view.status.stateful_set_replicas
    if to < 1:
        raise CliError(what, "with no replica nothing remains that could run a task", "plan for at least 1")
    if current is None or not told.tasks:
        why = told.doubt or "the status does not show the current replicas yet"
        raise CliError(what, f"its layout is not known: {why}", "try again when the group is stable")
    return current


def _even(tasks: Iterable[Task], standbys: int, threads: int | None) -> tuple[int, ...]:
    """The even sizes; `threads` of a pod where brokers assign, by thread."""
    return even_sizes(tasks, standbys) if threads is None else even_sizes_of_brokers(tasks, standbys, threads)


def _sizes(table: TaskTable, current: int, to: int) -> tuple[int, ...]:
    """The number that was asked for, its neighbours, and the nearest even numbers."""
    threads = None if table.streams is None else max((row.threads for row in table.processes), default=1)
    near = nearest_even(_even((Task(row.task, row.is_stateful) for row in table.rows), 0, threads), to)
    found = {to - 1, to + 1, *(size for size in near if size is not None)} - {to, current}
    return (to, *sorted(size for size in found if size >= 1))


def _known(view: AppView) -> Known:
    app, source = view.streamapp, view.status.learner_source
    known = Known(is_on_demand=not view.is_of_streams_protocol and source is LearnerSource.ON_DEMAND)
    if not isinstance(app, StreamApp):
        return known
    return replace(
        known,
        is_eager=app.spec.learners.rebalance.value == Rebalance.EAGER.value,
        is_triggered=app.spec.learners.trigger_rebalance,
        stabilization_seconds=app.spec.scale_down.stabilization_window.total_seconds(),
    )


def _holds(view: AppView, app: Running, chosen: Outcome) -> tuple[str, ...]:
    """What would hold a scale-down, as far as the play shows it."""
    if app.streams is not None:
        return tuple(about_brokers(view, chosen, is_growing=chosen.to > app.current))
    if chosen.to >= app.current:
        return ()
    if view.status.learner_source is LearnerSource.NONE:
        return ("The operator holds this scale-down: the application makes no copies (LearnersAvailable).",)
    if chosen.cold:
        return ("The operator holds this scale-down until the cold tasks have a caught-up copy.",)
    return ()


def _floors(view: AppView, app: Running, chosen: Outcome, rests_on: Basis) -> tuple[str, ...]:
    """What `minCopies` and `minZones` would hold."""
    if chosen.to >= app.current:
        return ()
    places = places_after(app, chosen, is_drained=rests_on.settings.assignor == LEARNER)
    return tuple(about_tasks(view, places))


def shares(step: Step) -> Mapping[int, int]:
    """How many tasks each pod runs after a rebalance."""
    return {ordinal: len(tasks) for ordinal, tasks in sorted(step.active.items())}
