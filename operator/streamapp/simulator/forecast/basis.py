"""What a prediction rests on: what the application shows, what the user says, and what is assumed, each by name."""

from collections.abc import Iterator
from dataclasses import dataclass

from streamapp.core.facts.snapshot import Speeds
from streamapp.core.status.streams_rows import StreamsRow
from streamapp.simulator.forecast.change import LEARNER, STOCK, Settings
from streamapp.simulator.forecast.running import Running
from streamapp.simulator.forecast.streams_basis import assumed_of_brokers, seen_of_brokers, streams_settings
from streamapp.simulator.forecast.times import HandoverGap, Pauses, Spread
from streamapp.simulator.stock import Release

SLOW_RESTORE, FAST_RESTORE = 80_000, 200_000
"""Records a second of one process: what the lab measured."""
DEFAULT_VERSION = "4.2.1"
NEWEST_BEFORE_3_2 = 10
"""Version of Kafka Streams' part of a subscription in 3.0 and 3.1; 3.2 has 11, and so has every release since."""
_FEWEST_RATES = 3
_LEAST_FACTOR = 1.2
"""Few observations say little of the extremes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the user says; None: it is learned, or assumed."""

    assignor: str | None = None
    kafka_version: str | None = None
    standbys: int | None = None
    warmups: int = 2
    probing_seconds: int = 600
    threads: int | None = None
    restore: int | None = None
    """Records a second of one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the resource says."""

    is_on_demand: bool
    is_eager: bool = False
    is_triggered: bool = True
    stabilization_seconds: float = 0.0
    """Of scale-downs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """All that a change is played with."""

    settings: Settings
    restore: Spread
    pauses: Pauses
    gap: HandoverGap
    learned: tuple[str, ...]
    """What the application shows, as phrases."""
    assumed: tuple[str, ...]
    """What nobody knows, or the user says."""


def basis(app: Running, speeds: Speeds, known: Known, given: Given) -> Basis:
    """Put together what is known; ValueError for a version of Kafka Streams that is not modelled."""
    if app.streams is not None:
        return _of_brokers(app, app.streams, speeds, known, given)
    assignor = given.assignor or (LEARNER if known.is_on_demand else STOCK)
    version, release = _release(app, given)
    standbys, is_seen = _standbys(app, given, assignor)
    threads, pauses, restore = _threads(app, given), _pauses(speeds, known), _restore(speeds, given)
    settings = Settings(
        assignor=assignor,
        release=release,
        standbys=standbys,
        warmups=given.warmups,
        probing_seconds=given.probing_seconds,
        threads=threads,
        is_eager=known.is_eager,
        is_triggered=known.is_triggered,
    )
    learned, assumed = list[str](), list[str]()
    (learned if version is not None and given.kafka_version is None else assumed).append(
        f"Kafka Streams {version or release.value}"
    )
    _note_threads(app, given, learned, assumed)
    (learned if is_seen else assumed).append(f"num.standby.replicas {standbys}")
    _note_speeds(app, speeds, given, pauses, learned, assumed)
    assumed.append(f"max.warmup.replicas {settings.warmups}, probing interval {settings.probing_seconds} s")
    assumed += _always(app)
    if settings.is_triggered:
        assumed.append("the operator triggers a rebalance when all learners have caught up")
    assumed += _doubts(app)
    return Basis(
        settings=settings,
        restore=restore,
        pauses=pauses,
        gap=HandoverGap.LEARNER if known.is_on_demand else HandoverGap.STANDBY,
        learned=tuple(learned),
        assumed=tuple(assumed),
    )


def _of_brokers(app: Running, streams: StreamsRow, speeds: Speeds, known: Known, given: Given) -> Basis:
    """The same for a group of the streams protocol."""
    pauses, is_given = _pauses(speeds, known), given.standbys is not None
    settings = streams_settings(streams, app, given.standbys, _threads(app, given))
    learned = list(seen_of_brokers(streams, settings, is_given=is_given))
    assumed = list(assumed_of_brokers(streams, settings, is_given=is_given))
    _note_threads(app, given, learned, assumed)
    _note_speeds(app, speeds, given, pauses, learned, assumed)
    assumed += [*_always(app), *_doubts(app)]
    return Basis(
        settings=settings,
        restore=_restore(speeds, given),
        pauses=pauses,
        gap=HandoverGap.DEPARTURE_CAPPED if streams.is_capped else HandoverGap.DEPARTURE,
        learned=tuple(learned),
        assumed=tuple(assumed),
    )


def _threads(app: Running, given: Given) -> int:
    return given.threads or max((row.threads for row in app.rows), default=1)


def _note_threads(app: Running, given: Given, learned: list[str], assumed: list[str]) -> None:
    threads = _threads(app, given)
    by_rows = bool(app.rows) and given.threads is None
    (learned if by_rows else assumed).append(f"{threads} stream thread{'' if threads == 1 else 's'} a pod")


def _note_speeds(
    app: Running, speeds: Speeds, given: Given, pauses: Pauses, learned: list[str], assumed: list[str]
) -> None:
    restore = _restore(speeds, given)
    rates = f"{restore.p10:,.0f} to {restore.p90:,.0f} records a second for each pod that restores"
    (learned if _are_learned(speeds, given) else assumed).append(rates)
    _note_pauses(pauses, learned, assumed)
    if app.kept:
        learned.append(f"what pods left on their volumes: {_kept(app)}")


def _kept(app: Running) -> str:
    """By ordinal, as many tasks as its volume has state of."""
    counts = ((ordinal, len(positions)) for ordinal, positions in sorted(app.kept.items()))
    return ", ".join(f"pod {ordinal} {count} task{'' if count == 1 else 's'}" for ordinal, count in counts)


def _release(app: Running, given: Given) -> tuple[str | None, Release]:
    """The version where it is known, and the release of the assignor; of several versions the oldest."""
    told = sorted({row.kafka_version for row in app.rows} - {None}, key=_numbers)
    if given.kafka_version is not None:
        return given.kafka_version, Release.of(given.kafka_version)
    if told and told[0] is not None:
        return told[0], Release.of(told[0])
    subscriptions = [row.newest_version for row in app.rows if row.newest_version is not None]
    if subscriptions and min(subscriptions) <= NEWEST_BEFORE_3_2:
        return "2.6 to 3.1", Release.FROM_2_6
    return None, Release.of(DEFAULT_VERSION)


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (version or "0").split("-")[0].split(".") if part.isdigit())


def _standbys(app: Running, given: Given, assignor: str) -> tuple[int, bool]:
    """How many, and whether the application shows it."""
    if given.standbys is not None:
        return given.standbys, False
    told = {row.standby_replicas for row in app.rows} - {None}
    if told:
        return max(count for count in told if count is not None), True
    return (app.usual_copies, True) if assignor == STOCK else (0, False)


def _are_learned(speeds: Speeds, given: Given) -> bool:
    return given.restore is None and len(speeds.restore) >= _FEWEST_RATES


def _restore(speeds: Speeds, given: Given) -> Spread:
    if given.restore is not None:
        return Spread(given.restore, given.restore, given.restore)
    if _are_learned(speeds, given):
        return Spread.of(speeds.restore).widened(_LEAST_FACTOR)
    return Spread.between(SLOW_RESTORE, FAST_RESTORE)


def _pauses(speeds: Speeds, known: Known) -> Pauses:
    unseen = Pauses()
    return Pauses(
        up=unseen.up.after([max(0.1, pause) for pause in speeds.pauses_up]),
        down=unseen.down.after([max(0.1, pause) for pause in speeds.pauses_down]),
        window=known.stabilization_seconds,
        seen_up=len(speeds.pauses_up),
        seen_down=len(speeds.pauses_down),
    )


def _note_pauses(pauses: Pauses, learned: list[str], assumed: list[str]) -> None:
    for words, spread, seen in (("add", pauses.up, pauses.seen_up), ("remove", pauses.down, pauses.seen_down)):
        text = f"{spread.p10:.0f} to {spread.p90:.0f} s to {words} pods, beside the rebalances"
        (learned if seen else assumed).append(text)
    if pauses.window:
        learned.append(f"fewer replicas wait for the stabilization window of {pauses.window:g} s")


def _always(app: Running) -> Iterator[str]:
    others = "other " if app.kept else ""
    yield f"no new records meanwhile, and no state on the volumes of {others}pods that are added"


def _doubts(app: Running) -> Iterator[str]:
    if any(row.is_tagged for row in app.rows):
        yield "members have client tags or a rack: rack awareness is not modelled"
    if app.unknown_sizes:
        yield f"the sizes of {app.unknown_sizes:,} changelogs are not known, so no time is given"
    if app.unknown_lags:
        yield f"the lags of {app.unknown_lags:,} copies are not known; they count as empty"
