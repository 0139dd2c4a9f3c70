"""A prediction for programs: `document_of(prediction)`. Pure."""

from typing import Any

from streamapp.cli.model.predictions.prediction import Prediction
from streamapp.core.facts.ids import TaskId
from streamapp.simulator.forecast.outcome import Outcome, Range, Step, Ways
from streamapp.simulator.forecast.times import Spread


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
        "rebalances": one.rebalances,
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
    if one.ways is not None:
        document["ways"] = _ways_document(one.ways)
    return document


def _ways_document(ways: Ways) -> dict[str, Any]:
    """What brokers can make of the change, in all ways that were played."""
    return {
        "played": ways.played,
        "moves": _range_document(ways.moves),
        "cold": _range_document(ways.cold),
        "worstShare": _range_document(ways.worst),
        "uncertain": [{"task": str(task), "pods": sorted(pods)} for task, pods in sorted(ways.uncertain.items())],
        "standbys": ways.standbys,
        "standbyRaises": ways.raises,
    }


def _range_document(numbers: Range) -> dict[str, int]:
    return {"fewest": numbers.fewest, "most": numbers.most}


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
