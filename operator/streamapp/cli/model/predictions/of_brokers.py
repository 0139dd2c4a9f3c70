"""What only a group of the streams protocol has: refusals, what else can be compared, and sentences. Pure."""

from collections.abc import Iterator

from streamapp.api.validation.parse import StreamApp
from streamapp.cli.errors import CliError
from streamapp.cli.model.app_view import AppView
from streamapp.cli.model.phrases import counted
from streamapp.core.actions.standbys import MOST as MOST_STANDBYS
from streamapp.core.facts.policy import LearnerSource
from streamapp.core.status.task_table import TaskTable
from streamapp.simulator.forecast.basis import Given
from streamapp.simulator.forecast.outcome import Outcome


def require_brokers_known(view: AppView, table: TaskTable, given: Given) -> None:
    """Raise CliError if brokers assign, and the operator does not report the group or an option has no effect."""
    is_told = table.streams is not None
    if not is_told and not view.is_of_streams_protocol:
        return
    what = f"StreamApp {view.name}"
    if not is_told:
        why = "its brokers assign tasks (streams group protocol), and the operator does not report members and settings"
        raise CliError(what, why, "upgrade the operator to the release of this command; then try again")
    without_effect = [name for name, is_set in _classic_options(given) if is_set]
    if without_effect:
        options = " and ".join(f"`{name}`" for name in without_effect)
        verb = "has" if len(without_effect) == 1 else "have"
        why = f"{options} {verb} no effect: its brokers assign tasks (streams group protocol)"
        raise CliError(what, why, "leave that out; `--standbys` stands for `streams.num.standby.replicas`")


def _classic_options(given: Given) -> Iterator[tuple[str, bool]]:
    usual = Given()
    yield "--assignor", given.assignor is not None
    yield "--kafka-version", given.kafka_version is not None
    yield "--warmups", given.warmups != usual.warmups
    yield "--probing", given.probing_seconds != usual.probing_seconds


def other_standbys(chosen: int, pods: int) -> tuple[int, ...]:
    """The other numbers of standbys that the group can have, fewest first."""
    return tuple(count for count in range(min(MOST_STANDBYS, pods - 1) + 1) if count != chosen)


def about_brokers(view: AppView, chosen: Outcome, *, is_growing: bool) -> Iterator[str]:
    """What would hold a scale-down, and what the operator does for it; of a scale-up, what it does not do."""
    if is_growing:
        if chosen.most_cold:
            yield "Brokers give new pods their tasks at once, without a copy; the operator does not delay a scale-up."
        return
    app, ways = view.streamapp, chosen.ways
    if ways is None or not ways.moves.most:
        return
    if isinstance(app, StreamApp) and not app.spec.agent.enabled:
        yield "The operator holds this scale-down: without the agent, positions are unknown (PositionsNotReported)."
        return
    if view.status.learner_source is LearnerSource.NONE:
        yield "The operator holds this scale-down: the application makes no copies (LearnersAvailable)."
        return
    if ways.raises:
        yield (
            f"The operator raises `streams.num.standby.replicas` of the group to {ways.standbys} for this, "
            f"and then sets it to {ways.at_rest} again."
        )
    if ways.cold.most:
        tasks = counted(ways.cold.most, "task")
        most = "" if ways.cold.fewest == ways.cold.most else "at most "
        yield (
            f"The operator holds this scale-down (WouldMoveCold): {most}{tasks} would go to pods without a caught-up "
            f"copy. {_way_out(ways.standbys, chosen.to)}"
        )


def _way_out(standbys: int, pods: int) -> str:
    if standbys < min(MOST_STANDBYS, pods):
        return "Try `--standbys 2`, or another number of replicas."
    return "Try another number of replicas."
