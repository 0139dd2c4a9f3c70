"""What a prediction rests on is learned from the application where it shows it, and named where it does not."""

from dataclasses import replace

from streamapp.core.facts.snapshot import MOST_RATES, NOTHING_SEEN, Direction, Speeds
from streamapp.simulator.forecast.basis import FAST_RESTORE, SLOW_RESTORE, Given, Known, basis
from streamapp.simulator.forecast.running import running
from streamapp.simulator.forecast.times import HandoverGap, Pauses, Spread
from streamapp.simulator.stock import Release
from tests.model.forecast.apps import UID, a_table

ON_DEMAND = Known(is_on_demand=True)
STANDBYS = Known(is_on_demand=False)
LAYOUT = {0: ("024", "135"), 1: ("135", "024")}


def test_without_agents_the_group_shows_threads_standbys_and_old_releases() -> None:
    app = running(a_table(LAYOUT, threads=2, newest_version=10), 2, 3, UID)
    found = basis(app, NOTHING_SEEN, STANDBYS, Given())
    assert (found.settings.assignor, found.settings.threads, found.settings.standbys) == ("stock", 2, 1)
    assert (found.settings.release, found.gap) == (Release.FROM_2_6, HandoverGap.STANDBY)
    assert found.learned == ("Kafka Streams 2.6 to 3.1", "2 stream threads a pod", "num.standby.replicas 1")
    assert found.restore == Spread.between(SLOW_RESTORE, FAST_RESTORE)


def test_a_release_since_3_2_is_assumed_to_be_a_newer_one() -> None:
    found = basis(running(a_table(LAYOUT), 2, 3, UID), NOTHING_SEEN, STANDBYS, Given())
    assert found.settings.release is Release.FROM_3_3
    assert "Kafka Streams 3.3 and newer" in found.assumed


def test_agents_report_versions_and_standbys() -> None:
    app = running(a_table(LAYOUT, kafka_version="3.2.3", standby_replicas=0), 2, 3, UID)
    found = basis(app, NOTHING_SEEN, ON_DEMAND, Given())
    assert (found.settings.assignor, found.settings.release, found.settings.standbys) == (
        "learner",
        Release.FROM_3_2,
        0,
    )
    assert "Kafka Streams 3.2.3" in found.learned


def test_rates_and_pauses_that_were_seen_replace_those_of_the_lab() -> None:
    seen = Speeds(restore=(40_000, 50_000, 60_000), pauses_up=(20.0,), pauses_down=(30.0, 31.0, 32.0, 33.0))
    found = basis(running(a_table(LAYOUT), 2, 3, UID), seen, ON_DEMAND, Given())
    assert found.restore.p50 == 50_000
    assert (found.pauses.up, found.pauses.seen_up) == (Pauses().up.after([20.0]), 1)
    assert found.pauses.down == Pauses().down.after([30.0, 31.0, 32.0, 33.0])
    assert not any("records a second" in phrase for phrase in found.assumed)


def test_one_observation_moves_an_estimate_and_keeps_it_wide() -> None:
    estimate = Spread.between(7.0, 28.0)
    found = estimate.after([28.0])
    assert estimate.p50 < found.p50 < 28.0
    assert found.p10 < estimate.p50
    assert found.p90 > 28.0
    assert estimate.after([]) == estimate


def test_many_observations_that_agree_make_an_estimate_narrow() -> None:
    found = Spread.between(7.0, 28.0).after([30.0, 31.0, 32.0, 33.0] * 5)
    assert 28.0 < found.p50 < 33.0
    assert found.p90 / found.p10 < 2.5


def test_a_scale_down_waits_for_its_stabilization_window_once() -> None:
    known = replace(STANDBYS, stabilization_seconds=30.0)
    found = basis(running(a_table(LAYOUT), 2, 1, UID), NOTHING_SEEN, known, Given())
    assert (found.pauses.before(Direction.DOWN), found.pauses.before(Direction.UP)) == (30.0, 0.0)
    assert "fewer replicas wait for the stabilization window of 30 s" in found.learned


def test_the_users_word_comes_first() -> None:
    seen = Speeds(restore=(40_000,) * 5)
    given = Given(assignor="stock", kafka_version="3.1.2", standbys=2, threads=4, restore=1_000)
    found = basis(running(a_table(LAYOUT, kafka_version="4.2.1"), 2, 3, UID), seen, ON_DEMAND, given)
    settings = found.settings
    assert (settings.assignor, settings.release, settings.standbys, settings.threads) == (
        "stock",
        Release.FROM_2_6,
        2,
        4,
    )
    assert found.restore == Spread(1_000, 1_000, 1_000)


def test_tags_are_told_as_not_modelled() -> None:
    found = basis(running(a_table(LAYOUT, is_tagged=True), 2, 3, UID), NOTHING_SEEN, STANDBYS, Given())
    assert "members have client tags or a rack: rack awareness is not modelled" in found.assumed


def test_speeds_keep_the_newest_observations() -> None:
    seen = NOTHING_SEEN.with_rates(float(number) for number in range(MOST_RATES + 5))
    assert (len(seen.restore), seen.restore[-1]) == (MOST_RATES, MOST_RATES + 4)
    assert seen.with_pause(Direction.of(2, 3), 7.0).pauses_up == (7.0,)
    assert seen.with_pause(Direction.of(3, 2), 8.0).pauses_down == (8.0,)


def test_a_wider_basis_gives_wider_quantiles() -> None:
    spread = Spread.between(80_000, 200_000)
    assert round(spread.quantile(0.1)) == spread.p10
    assert round(spread.quantile(0.9)) == spread.p90
    assert spread.quantile(0.5) == spread.p50
    assert Spread(0.0, 0.0, 0.0).quantile(0.9) == 0.0
    assert Pauses().of(Direction.UP) == Pauses().up
