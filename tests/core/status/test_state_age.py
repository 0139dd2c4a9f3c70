"""`state.maxIdleTime` against the settings of the changelogs: what is warned of, and that nothing waits for it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.actions.decision import Answer, Decision, Event
from streamapp.core.decide import decide
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.core.reasons import Reason
from tests.builders import POLICY, a_snapshot
from tests.support import example

HOUR = timedelta(hours=1)
DAY = 24 * HOUR
COMPACT, DELETE = frozenset({"compact"}), frozenset({"delete"})
SHORT = TopicConfig(COMPACT, None, HOUR)
LONG = TopicConfig(COMPACT, None, DAY)


def kept(configs: dict[str, TopicConfig | ConfigUnread], max_idle_time: timedelta | None = 20 * HOUR) -> Snapshot:
    return a_snapshot(desired=3, record=None, app={"max_idle_time": max_idle_time}, topic_configs=configs)


def identity(decision: Decision) -> tuple[Answer, Reason, str]:
    (found,) = (each for each in decision.conditions if each.type == "ProcessIdentityStable")
    return found.status, found.reason, found.detail


@pytest.mark.parametrize(
    ("config", "named"),
    [
        pytest.param(SHORT, "delete.retention.ms is 3600000 (1:00:00)", id="tombstones vanish"),
        pytest.param(TopicConfig(COMPACT, None, 20 * HOUR), "delete.retention.ms is 72000000", id="just as long"),
        pytest.param(TopicConfig(DELETE, 2 * HOUR, DAY), "retention.ms is 7200000 (2:00:00)", id="all vanishes"),
        pytest.param(TopicConfig(COMPACT | DELETE, HOUR, DAY), "retention.ms is 3600000", id="both, by age"),
        pytest.param(TopicConfig(COMPACT | DELETE, DAY, HOUR), "delete.retention.ms is 3600000", id="both, tombstones"),
    ],
)
def test_a_changelog_that_keeps_less_than_state_may_lie_unused_is_named(config: TopicConfig, named: str) -> None:
    decision = decide(kept({"a-changelog": config}), POLICY)
    (warned,) = decision.warnings
    assert warned.reason is Reason.MaxIdleTimeTooLong
    assert warned.detail.startswith(f"topic a-changelog: {named}")
    assert warned.detail.endswith("`state.maxIdleTime` is 20:00:00")
    assert identity(decision) == (Answer.TRUE, Reason.MaxIdleTimeTooLong, warned.detail)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(LONG, id="long enough"),
        pytest.param(TopicConfig(COMPACT, None, 20 * HOUR + timedelta(milliseconds=1)), id="just long enough"),
        pytest.param(TopicConfig(COMPACT, HOUR, DAY), id="nothing is deleted by age"),
        pytest.param(TopicConfig(DELETE, DAY, HOUR), id="nothing is compacted"),
        pytest.param(TopicConfig(DELETE, None, HOUR), id="unlimited"),
    ],
)
def test_what_is_long_enough_or_has_no_meaning_is_not_warned_of(config: TopicConfig) -> None:
    decision = decide(kept({"a-changelog": config}), POLICY)
    assert decision.warnings == ()
    assert identity(decision) == (Answer.TRUE, Reason.IdentityHolds, "")


def test_the_shortest_of_several_is_named_and_the_others_are_counted() -> None:
    configs: dict[str, TopicConfig | ConfigUnread] = {
        "c": SHORT,
        "b": TopicConfig(COMPACT, None, HOUR / 2),
        "a": LONG,
        "d": ConfigUnread("?"),
    }
    (warned,) = decide(kept(configs), POLICY).warnings
    assert warned == Event(
        Reason.MaxIdleTimeTooLong,
        "topic b: delete.retention.ms is 1800000 (0:30:00), `state.maxIdleTime` is 20:00:00, and 1 more topic",
    )


def test_settings_that_could_not_be_read_are_said_to_be_unknown_and_warn_of_nothing() -> None:
    decision = decide(kept({"a": LONG, "b": ConfigUnread("grant DESCRIBE_CONFIGS on topic b")}), POLICY)
    assert decision.warnings == ()
    assert identity(decision) == (
        Answer.TRUE,
        Reason.IdentityHolds,
        "whether `state.maxIdleTime` is short enough is not known: grant DESCRIBE_CONFIGS on topic b",
    )


def test_an_application_without_state_is_warned_of_nothing() -> None:
    assert decide(kept({"a": SHORT, "b": ConfigUnread("?")}, max_idle_time=None), POLICY).warnings == ()


@pytest.mark.parametrize("desired", [2, 3, 5])
@pytest.mark.parametrize("config", [SHORT, ConfigUnread("?")])
def test_no_setting_of_a_topic_changes_what_is_done(desired: int, config: TopicConfig | ConfigUnread) -> None:
    """A scale-down serves no old state, and growing never waits."""
    snapshot = a_snapshot(desired=desired, app={"max_idle_time": 20 * HOUR})
    configs = dict.fromkeys(example.task_set().topics, config)
    plain, decision = decide(snapshot, POLICY), decide(replace(snapshot, topic_configs=configs), POLICY)
    assert replace(decision, warnings=(), conditions=plain.conditions) == plain
    assert [each.status for each in decision.conditions] == [each.status for each in plain.conditions]
