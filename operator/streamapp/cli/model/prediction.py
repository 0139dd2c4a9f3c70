"""What new desired replicas would cause, for people and programs: the forecasts of the model, side by side. Pure.

The layout is the operator's task table. What neither it nor the resource says is assumed, and assumptions are named.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamapp.api.http.build import table_from
from streamapp.api.http.messages import Tasks
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.errors import CliError
from streamapp.cli.model.amounts import Amount
from streamapp.cli.model.app_view import AppView
from streamapp.cli.model.floors import about_tasks, places_after, zones_of
from streamapp.cli.model.scale_plan import ScalePlan, warnings
from streamapp.core.assignors.group import Task
from streamapp.core.facts.agent_reports import Rebalance
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.policy import LearnerSource
from streamapp.core.status.task_table import TaskTable
from streamapp.simulator.forecast.basis import Basis, Given, Known, basis
from streamapp.simulator.forecast.change import LEARNER, STOCK
from streamapp.simulator.forecast.outcome import Outcome, Step, outcome
from streamapp.simulator.forecast.running import LayoutUnknownError, Running, running
from streamapp.simulator.forecast.times import Spread
from streamapp.simulator.sizes import even_sizes, nearest_even


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question about one StreamApp."""

    words: str
    """Of the command line: `--to 80%`."""
    amount: Amount
    given: Given
    compares: bool
    """Whether the other assignor and other numbers of replicas are played, too."""


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
    """Play the change; CliError if the layout is not known well enough, or nothing would remain."""
    to = asked.amount.of(view.streamapp.replicas)
    current = _require_known(view, told, to)
    table = table_from(told)
    sizes = _sizes(table, current, to) if asked.compares else (to,)
    try:
        app = running(table, current, max(sizes), view.streamapp.metadata.uid)
    except LayoutUnknownError as error:
        step = f"`kubectl streamapp doctor {view.streamapp.metadata.name}` finds the cause"
        raise CliError(f"StreamApp {view.name}", str(error), step) from error
    rests_on = basis(app, table.speeds, _known(view), asked.given)
    chosen, *others = (_outcome(app, size, rests_on) for size in sizes)
    if asked.compares:
        other = LEARNER if rests_on.settings.assignor == STOCK else STOCK
        swapped = replace(rests_on, settings=replace(rests_on.settings, assignor=other))
        others.insert(0, _outcome(app, to, swapped))
    plan = ScalePlan(view=view, asked=asked.words, amount=asked.amount)
    return Prediction(
        name=view.name,
        current=current,
        to=to,
        stateful=len(app.world.ends),
        chosen=chosen,
        others=tuple(others),
        even=nearest_even(even_sizes(app.world.tasks, rests_on.settings.standbys), to),
        basis=rests_on,
        zones=zones_of(view),
        doubts=(*_holds(view, chosen, current), *_floors(view, app, chosen, rests_on), *warnings(plan)),
    )


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


def _sizes(table: TaskTable, current: int, to: int) -> tuple[int, ...]:
    """The number that was asked for, its neighbours, and the nearest even numbers."""
    near = nearest_even(even_sizes(Task(row.task, row.is_stateful) for row in table.rows), to)
    found = {to - 1, to + 1, *(size for size in near if size is not None)} - {to, current}
    return (to, *sorted(size for size in found if size >= 1))


def _known(view: AppView) -> Known:
    app, source = view.streamapp, view.status.learner_source
    known = Known(is_on_demand=source is LearnerSource.ON_DEMAND)
    if not isinstance(app, StreamApp):
        return known
    return replace(
        known,
        is_eager=app.spec.learners.rebalance.value == Rebalance.EAGER.value,
        is_triggered=app.spec.learners.trigger_rebalance,
        stabilization_seconds=app.spec.scale_down.stabilization_window.total_seconds(),
    )


def _holds(view: AppView, chosen: Outcome, current: int) -> tuple[str, ...]:
    """What would hold a scale-down, as far as the play shows it."""
    if chosen.to >= current:
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


def document_of(prediction: Prediction) -> dict[str, Any]:
    """The prediction for programs."""
    below, above = prediction.even
    every = (prediction.chosen, *prediction.others)
    return {
        "name": prediction.name,
        "from": prediction.current,
        "to": prediction.to,
        "statefulTasks": prediction.stateful,
        "outcomes": [_outcome_document(one, is_chosen=one is prediction.chosen) for one in every],
        "rounds": [_step_document(one) for one in prediction.chosen.steps],
        "zones": {str(ordinal): zone for ordinal, zone in prediction.zones.items()},
        "evenReplicas": {name: size for name, size in (("below", below), ("above", above)) if size is not None},
        "learned": list(prediction.basis.learned),
        "assumed": list(prediction.basis.assumed),
        "warnings": list(prediction.doubts),
    }


def _outcome_document(one: Outcome, *, is_chosen: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "assignor": one.assignor,
        "chosen": is_chosen,
        "to": one.to,
        "moves": len(one.moves),
        "needlessMoves": one.needless,
        "moved": [{"task": str(move.task), "from": move.source, "to": move.target} for move in one.moves],
        "learners": one.learners,
        "rebalances": len(one.steps),
        "copiedRecords": round(one.copied),
        "worstShare": one.worst,
        "cold": one.cold,
        "converges": one.is_over,
    }
    if one.copied_bytes is not None:
        document["copiedBytes"] = round(one.copied_bytes)
    for name, spread in (("seconds", one.seconds), ("gapSeconds", one.gap)):
        if spread is not None:
            document[name] = _spread_document(spread)
    return document


def _spread_document(spread: Spread) -> dict[str, float]:
    return {"p10": round(spread.p10, 1), "p50": round(spread.p50, 1), "p90": round(spread.p90, 1)}


def _step_document(one: Step) -> dict[str, Any]:
    return {
        "seconds": round(one.seconds, 1),
        "cause": one.cause.value,
        "waiting": one.waiting,
        "pods": [
            {"ordinal": ordinal, "active": _names(one.active[ordinal]), "copies": _names(one.copies[ordinal])}
            for ordinal in sorted(one.active)
        ],
    }


def _names(tasks: frozenset[TaskId]) -> list[str]:
    return [str(task) for task in sorted(tasks)]


def shares(step: Step) -> Mapping[int, int]:
    """How many tasks each pod runs after a rebalance."""
    return {ordinal: len(tasks) for ordinal, tasks in sorted(step.active.items())}
