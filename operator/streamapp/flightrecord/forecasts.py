"""Makes lines of the flight record about predicted changes of the replicas."""

from datetime import datetime
from typing import Any

from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import (
    MOST_MOVED,
    ForecastClosedLine,
    ForecastLine,
    ForecastResult,
    MovedTask,
)
from streamapp.simulator.forecast.comparison import Finished, Forecast


def line(head: Head, news: Forecast | Finished, now: datetime) -> ForecastLine | ForecastClosedLine:
    """A prediction, or what was seen beside it."""
    return _closed_line(head, news) if isinstance(news, Finished) else _made_line(head, news, now)


def _made_line(head: Head, forecast: Forecast, now: datetime) -> ForecastLine:
    outcome = forecast.outcome
    return ForecastLine(
        **head,
        seq=0,
        ts=min(forecast.made_at, now),
        **_change(forecast),
        assignor=outcome.assignor,
        moves=len(outcome.moves),
        moved=tuple(
            MovedTask(task=str(move.task), source=move.source, target=move.target)
            for move in outcome.moves[:MOST_MOVED]
        ),
        learners=outcome.learners,
        rebalances=outcome.rebalances,
        worst_share=outcome.worst,
        cold=outcome.cold,
    )


def _closed_line(head: Head, finished: Finished) -> ForecastClosedLine:
    is_seen = finished.seconds is not None
    return ForecastClosedLine(
        **head,
        seq=0,
        ts=finished.closed_at,
        **_change(finished.forecast),
        result=ForecastResult[finished.result.name],
        moves=len(finished.forecast.outcome.moves),
        seen_moves=finished.moves,
        wrong_moves=len(finished.wrong) if is_seen else None,
        seen_seconds=finished.seconds,
        error_ratio=finished.error,
    )


def _change(forecast: Forecast) -> dict[str, Any]:
    seconds, ways = forecast.outcome.seconds, forecast.outcome.ways
    return {
        "opened_at": forecast.opened_at,
        "from_replicas": forecast.from_replicas,
        "to_replicas": forecast.to_replicas,
        "p10_seconds": None if seconds is None else seconds.p10,
        "p50_seconds": None if seconds is None else seconds.p50,
        "p90_seconds": None if seconds is None else seconds.p90,
        "fewest_moves": None if ways is None else ways.moves.fewest,
        "most_moves": None if ways is None else ways.moves.most,
        "uncertain_tasks": None if ways is None else len(ways.uncertain),
    }
