from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamapp.api.status.translate import app_of, as_rival, desired_since, policy_of
from streamapp.api.validation.parse import InvalidStreamApp, parse
from streamapp.core.facts.agent_reports import Rebalance
from streamapp.core.facts.policy import (
    Assignor,
    LearnerSource,
    OnTimeout,
    RolloutPolicy,
    ScaleDownPolicy,
    ScalingPolicy,
    Timing,
)
from streamapp.core.facts.snapshot import App, ConflictingStreamApp, DesiredReplicas, DesiredSample, HoldOverride
from tests.streamapps import ABSENT, UID, a_streamapp, stored

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CREATED = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SEEN = DesiredSample(NOW - timedelta(minutes=5), 3)
RIVAL = ConflictingStreamApp(name="demo/other", uid="u-2", created_at=NOW)


def test_a_sound_streamapp_is_what_its_user_wrote() -> None:
    assert app_of(a_streamapp(), history=[SEEN], conflicting=[RIVAL]) == App(
        uid=UID,
        generation=4,
        created_at=CREATED,
        desired=DesiredReplicas(replicas=3, history=(SEEN,)),
        conflicting=(RIVAL,),
        max_idle_time=timedelta(hours=20),
        volume_size=20 * 2**30,
    )


@pytest.mark.parametrize(
    ("changes", "is_known"),
    [
        pytest.param({}, True, id="the same number"),
        pytest.param({"replicas": 2}, False, id="another number"),
        pytest.param({"generation": 3}, False, id="a spec that has changed since"),
        pytest.param({"since": "2026-11-21T12:00:01Z"}, False, id="a time to come"),
        pytest.param({"since": "2026-11-21T11:00:00"}, False, id="a time without a zone"),
        pytest.param({"since": "lately"}, False, id="no time"),
        pytest.param({"generation": ABSENT}, False, id="a part of it"),
    ],
)
def test_what_an_earlier_process_noted_of_the_desired_replicas_counts_while_nothing_has_changed(
    changes: dict[str, Any], *, is_known: bool
) -> None:
    noted = {"replicas": 3, "since": "2026-11-21T11:00:00Z", "generation": 4, **changes}
    noted = {name: value for name, value in noted.items() if value is not ABSENT}
    found = a_streamapp({"status": {"scaleDown": {"target": 3, "reason": "Stabilizing", "desired": noted}}})
    assert desired_since(found, NOW) == (NOW - timedelta(hours=1) if is_known else None)


def test_of_desired_replicas_of_which_nothing_is_noted_nothing_is_known() -> None:
    assert desired_since(a_streamapp({"status": {}}), NOW) is None


def test_everything_that_changes_a_decision_is_taken_over() -> None:
    found = a_streamapp(
        {
            "spec.paused": True,
            "spec.dryRun": True,
            "spec.state": ABSENT,
            "metadata.deletionTimestamp": "2026-11-21T12:00:00Z",
            "metadata.annotations": {
                "streamapp.dev/hold": "the month is being closed",
                "streamapp.dev/override": "h-1 the copies are of no use",
            },
            "status": {"statefulSetReplicas": 6},
        }
    )
    assert app_of(found, history=[]) == App(
        uid=UID,
        generation=4,
        created_at=CREATED,
        desired=DesiredReplicas(replicas=3, history=()),
        paused=True,
        dry_run=True,
        deleting=True,
        keeps_state=False,
        held_because="the month is being closed",
        override=HoldOverride(hold_id="h-1", why="the copies are of no use"),
        granted_before=6,
    )


def test_an_invalid_one_carries_its_faults_and_keeps_what_it_has() -> None:
    found = parse(stored({"spec.kafka": ABSENT, "status": {"statefulSetReplicas": 6}}))
    assert isinstance(found, InvalidStreamApp)
    assert app_of(found, history=[]) == App(
        uid=UID,
        generation=4,
        created_at=CREATED,
        desired=DesiredReplicas(replicas=3, history=()),
        fault="spec.kafka is required",
        granted_before=6,
    )


@pytest.mark.parametrize(
    ("annotation", "override"),
    {
        "h-1 the disk is full": HoldOverride(hold_id="h-1", why="the disk is full"),
        "  h-1   the disk is full ": HoldOverride(hold_id="h-1", why="the disk is full"),
        "h-1": HoldOverride(hold_id="h-1", why="no reason given"),
        "": None,
        "  ": None,
    }.items(),
)
def test_an_override_names_a_hold_and_a_reason(annotation: str, override: HoldOverride | None) -> None:
    found = a_streamapp({"metadata.annotations": {"streamapp.dev/override": annotation}})
    assert app_of(found, history=[]).override == override


@pytest.mark.parametrize(
    ("annotation", "why"), [("by Ops", "by Ops"), ("", "no reason given"), (" ", "no reason given")]
)
def test_a_hold_without_a_reason_holds_too(annotation: str, why: str) -> None:
    found = a_streamapp({"metadata.annotations": {"streamapp.dev/hold": annotation}})
    assert app_of(found, history=[]).held_because == why


def test_without_choices_the_policy_is_the_cores_own() -> None:
    assert policy_of(a_streamapp()) == ScalingPolicy()


def test_every_choice_reaches_the_policy() -> None:
    found = a_streamapp(
        {
            "spec.scaleDown": {
                "policy": "Immediate",
                "reason": "the state is a cache",
                "stabilizationWindow": "1m30s",
                "timeout": "2h",
                "onTimeout": "Proceed",
                "allowZero": True,
            },
            "spec.learners": {
                "acceptableRecoveryLag": 500,
                "assignor": "Unknown",
                "triggerRebalance": False,
                "source": "OnDemand",
                "rebalance": "Eager",
            },
            "spec.agent": {"enabled": True},
            "spec.rollout": {"policy": "Paused"},
        }
    )
    timing = Timing(fact_age=timedelta(seconds=5))
    assert policy_of(found, timing) == ScalingPolicy(
        scale_down=ScaleDownPolicy.IMMEDIATE,
        stabilization_window=timedelta(seconds=90),
        timeout=timedelta(hours=2),
        on_timeout=OnTimeout.PROCEED,
        force_reason="the state is a cache",
        allow_zero=True,
        acceptable_recovery_lag=500,
        assignor=Assignor.UNKNOWN,
        trigger_rebalance=False,
        agent=True,
        source=LearnerSource.ON_DEMAND,
        rebalance=Rebalance.EAGER,
        rollout=RolloutPolicy.PAUSED,
        timing=timing,
    )


def test_another_streamapp_is_a_rival_by_its_full_name() -> None:
    assert as_rival(a_streamapp()) == ConflictingStreamApp(name="demo/wordcount", uid=UID, created_at=CREATED)
