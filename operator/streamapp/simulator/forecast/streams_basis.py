"""What a prediction of a streams group rests on: what the brokers show, what the user says, and what is assumed."""

from collections.abc import Iterator

from streamapp.core.assignors.broker_moves import releases_of
from streamapp.core.status.streams_rows import StreamsRow
from streamapp.simulator.forecast.change import BROKERS, Brokers, Settings
from streamapp.simulator.forecast.running import Running

_RANKS_BY_OFFSETS = "4.4"


def streams_settings(streams: StreamsRow, app: Running, standbys: int | None, threads: int) -> Settings:
    """How the brokers assign.

    Args:
        streams: The group.
        app: The application that it is of.
        standbys: `streams.num.standby.replicas` by the user's word; None: what the group has.
        threads: Stream threads of pods that are added.
    """
    told = streams.standbys
    now = app.usual_copies if told is None else told.now
    interval = streams.group.assignment_interval
    at_rest = now if told is None else told.at_rest
    chosen = now if standbys is None else standbys
    return Settings(
        assignor=BROKERS,
        standbys=chosen,
        threads=threads,
        brokers=Brokers(
            releases=releases_of(streams.group),
            at_rest=at_rest if standbys is None else standbys,
            most=max(chosen, now if told is None else told.most),
            heartbeat_seconds=streams.heartbeat.total_seconds(),
            is_capped=streams.is_capped,
            interval_seconds=0.0 if interval is None else interval.total_seconds(),
        ),
    )


def seen_of_brokers(streams: StreamsRow, settings: Settings, *, is_given: bool) -> Iterator[str]:
    """What the group shows, as phrases; `is_given` if the user says how many standbys there are."""
    yield f"brokers {streams.group.broker_release}, assignor {BROKERS}"
    if streams.standbys is not None and not is_given:
        yield f"streams.num.standby.replicas {settings.standbys}"
    brokers = settings.brokers
    if brokers is not None and brokers.most > settings.standbys:
        yield f"the operator raises streams.num.standby.replicas to {brokers.most} at most while pods leave"
    if streams.is_capped:
        yield f"agents shorten heartbeats to {brokers_heartbeat(settings) * 1000:.0f} ms while tasks move"
    if streams.group.assignment_interval is not None:
        yield f"{streams.group.assignment_interval.total_seconds():g} s between two assignments"


def assumed_of_brokers(streams: StreamsRow, settings: Settings, *, is_given: bool) -> Iterator[str]:
    """What nobody knows, or the user says, as phrases."""
    if is_given:
        yield f"streams.num.standby.replicas {settings.standbys}, and these standbys have caught up"
    elif streams.standbys is None:
        yield f"streams.num.standby.replicas {settings.standbys}, as many as most tasks have"
    if not streams.is_capped:
        yield f"heartbeats every {brokers_heartbeat(settings):g} s"
    yield "gaps of one run on a bare broker 4.2.1"
    yield "ties, the order of threads and the patch release of the brokers are played in several ways"
    if streams.group.broker_release == _RANKS_BY_OFFSETS:
        yield "offsets that the brokers have of copies can be a minute old: several ranks are played"


def brokers_heartbeat(settings: Settings) -> float:
    """Seconds between two heartbeats while tasks move."""
    return 0.0 if settings.brokers is None else settings.brokers.heartbeat_seconds
