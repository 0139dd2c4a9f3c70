from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamapp.api.v1alpha1.spec import StreamAppSpec
from streamapp.api.v1alpha1.status import StreamAppStatus
from streamapp.api.validation.faults import Fault
from streamapp.api.validation.parse import InvalidStreamApp, Parsed, StreamApp, parse
from tests.mistakes import Wrong
from tests.streamapps import ABSENT, ALLOWED_CHANGES, WRONG, a_streamapp, stored

MINIMAL: dict[str, Any] = {
    "applicationId": "wordcount",
    "kafka": {"bootstrapServers": "kafka:9092"},
    "template": {"spec": {"containers": [{"name": "app"}]}},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_whatever_is_wrong_is_told_in_a_sentence(wrong: Wrong) -> None:
    found = parse(stored(wrong.changes, name=wrong.name))
    assert isinstance(found, InvalidStreamApp)
    assert found.sentence == wrong.says


@pytest.mark.parametrize("changes", ALLOWED_CHANGES.values(), ids=ALLOWED_CHANGES)
def test_what_is_sound_is_read(changes: dict[str, Any]) -> None:
    assert isinstance(parse(stored(changes)), StreamApp)


def test_only_what_changed_since_the_version_before_is_read_again() -> None:
    first = stored({})
    before = Parsed(first, parse(first))
    assert isinstance(before.streamapp, StreamApp)
    other_spec = parse(stored({"spec.replicas": 7}), before)
    other_status = parse({**first, "status": {"replicas": 9}}, before)
    same = parse(stored({}), before)
    assert isinstance(other_spec, StreamApp)
    assert isinstance(other_status, StreamApp)
    assert isinstance(same, StreamApp)
    assert (other_spec.spec.replicas, other_spec.status is before.streamapp.status) == (7, True)
    assert (other_status.status.replicas, other_status.spec is before.streamapp.spec) == (9, True)
    assert (same, same.spec is before.streamapp.spec) == (before.streamapp, True)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_becomes_wrong_is_told_and_what_becomes_right_is_read(wrong: Wrong) -> None:
    sound, broken = stored({}), stored(wrong.changes, name=wrong.name)
    assert parse(broken, Parsed(sound, parse(sound))) == parse(broken)
    assert parse(sound, Parsed(broken, parse(broken))) == parse(sound)


def test_a_mistake_that_compares_equal_to_what_was_meant_is_read_again() -> None:
    """`1` and `true` are equal in Python; the API server takes only one of them."""
    wrong = stored({"spec.template.spec.hostNetwork": 1})
    meant = parse(
        stored({"spec.template.spec.hostNetwork": True, "metadata.generation": 5}), Parsed(wrong, parse(wrong))
    )
    assert isinstance(meant, StreamApp)
    assert meant.spec.template["spec"]["hostNetwork"] is True


def test_a_mistake_of_a_streamapp_that_was_made_anew_is_no_spec_of_the_one_before() -> None:
    """It has the name and the generation of the one before, and a field that compares equal."""
    meant = stored({"spec.template.spec.hostNetwork": True})
    wrong = stored({"spec.template.spec.hostNetwork": 1, "metadata.uid": "another"})
    found = parse(wrong, Parsed(meant, parse(meant)))
    assert isinstance(found, StreamApp)
    assert found.spec.template["spec"]["hostNetwork"] is not True


def test_every_fault_is_told_at_once() -> None:
    changes = {"spec.replicas": -1, "spec.scaleDown.timeout": "soon", "spec.kafka": ABSENT}
    found = parse(stored(changes, name="Word"))
    assert isinstance(found, InvalidStreamApp)
    assert [fault.field for fault in found.faults] == [
        "metadata.name",
        "spec.kafka",
        "spec.replicas",
        "spec.scaleDown.timeout",
    ]


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (ABSENT, Fault("spec", "must be an object")),
        ("three pods", Fault("spec", "must be an object, not 'three pods'")),
        ([], Fault("spec", "must be an object")),
    ],
    ids=["absent", "text", "list"],
)
def test_a_spec_that_is_none_is_told_too(spec: object, fault: Fault) -> None:
    found = parse(stored({"spec": spec}))
    assert isinstance(found, InvalidStreamApp)
    assert found.faults == (fault,)


@pytest.mark.parametrize(("levels", "is_valid"), [(98, True), (99, False), (5000, False)])
def test_a_template_that_is_nested_too_deep_is_told(levels: int, is_valid: bool) -> None:
    innermost: list[Any] = []
    nested = innermost
    for _ in range(levels - 1):
        innermost.append([])
        innermost = innermost[0]
    whole = stored()
    whole["spec"]["template"]["spec"]["ofTomorrow"] = nested
    found = parse(whole)
    assert isinstance(found, StreamApp) is is_valid
    if isinstance(found, InvalidStreamApp):
        assert found.faults == (Fault("spec.template", "must not be nested deeper than 100 levels"),)


def test_a_field_of_a_newer_schema_is_left_out_of_account() -> None:
    assert a_streamapp({"spec.adopt": {"statefulSet": "old"}, "spec.learners.weight": 2}) == a_streamapp()


def test_the_template_stays_as_it_is_written() -> None:
    template = {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {"containers": [{"name": "app", "env": [{"name": "X", "value": "1"}], "ofTomorrow": [1, None]}]},
    }
    assert a_streamapp({"spec.template": template}).spec.template == template


def test_everything_but_three_fields_has_a_default() -> None:
    spec = StreamAppSpec.model_validate(MINIMAL)
    assert spec.model_dump(mode="json", by_alias=True, exclude_none=True) == {
        **MINIMAL,
        "replicas": 1,
        "topology": "",
        "kafka": {"bootstrapServers": "kafka:9092", "configSecretRefs": []},
        "container": "",
        "learners": {
            "rebalance": "Conservative",
            "acceptableRecoveryLag": 10000,
            "assignor": "HighAvailability",
            "triggerRebalance": True,
        },
        "agent": {
            "enabled": False,
            "injectVia": "JDK_JAVA_OPTIONS",
            "port": 7711,
            "defaults": ["assignor", "heartbeat", "leave"],
        },
        "scaleDown": {
            "policy": "Hold",
            "reason": "",
            "stabilizationWindow": "30s",
            "timeout": "1h",
            "onTimeout": "Wait",
            "allowZero": False,
        },
        "rollout": {"policy": "WhenCaughtUp"},
        "disruption": {"policy": "OneAtATime"},
        "objective": {"availability": "99.9"},
        "paused": False,
        "dryRun": False,
    }


def test_state_has_defaults_too() -> None:
    state = a_streamapp({"spec.state.volumeClaimTemplate.resources.requests.storage": 5}).spec.state
    assert state is not None
    assert state.model_dump(mode="json", by_alias=True) == {
        "mountPath": "/var/lib/streams",
        "stateDir": "",
        "claimName": "state",
        "volumeClaimTemplate": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "5"}},
        },
        "retention": {"whenScaled": "Retain", "whenDeleted": "Retain"},
        "maxIdleTime": "20h",
    }
    assert (state.directory, state.max_idle_time) == ("/var/lib/streams", timedelta(hours=20))


@pytest.mark.parametrize(("text", "budget"), [("99.9", 0.001), ("0", 1.0), ("99.9999", 0.000001), ("50.5", 0.495)])
def test_an_objective_leaves_a_share_of_the_time(text: str, budget: float) -> None:
    spec = a_streamapp({"spec.objective.availability": text, "spec.objective.longestDowntime": "500ms"}).spec
    assert spec.objective.budget == pytest.approx(budget)
    assert spec.objective.longest_downtime == timedelta(milliseconds=500)


@pytest.mark.parametrize("text", ["100", "99.99999", "-1", "99,9", "", "99.", ".5", "99.9%"])
def test_an_objective_that_cannot_be_met_or_read_is_refused(text: str) -> None:
    found = parse(stored({"spec.objective.availability": text}))
    assert isinstance(found, InvalidStreamApp)
    (fault,) = found.faults
    assert fault.field == "spec.objective.availability"
    assert "must be a percentage below 100, as text: '99.9'" in str(fault)


def test_the_application_runs_in_the_first_container_unless_another_is_named() -> None:
    assert a_streamapp().spec.application_container["name"] == "app"
    assert a_streamapp({"spec.container": "sidecar"}).spec.application_container["name"] == "sidecar"


def test_an_invalid_one_still_says_who_it_is_and_what_it_wishes_for() -> None:
    found = parse(stored({"spec.kafka": ABSENT, "spec.replicas": 7}))
    assert isinstance(found, InvalidStreamApp)
    assert (found.metadata.name, found.metadata.generation, found.replicas) == ("wordcount", 4, 7)


@pytest.mark.parametrize("wished", [ABSENT, "seven", -1, True, 1.5], ids=str)
def test_where_the_wish_cannot_be_read_it_is_what_was_granted(wished: object) -> None:
    found = parse(stored({"spec.kafka": ABSENT, "spec.replicas": wished, "status": {"statefulSetReplicas": 6}}))
    assert found.replicas == 6


def test_metadata_is_read_with_its_times() -> None:
    metadata = a_streamapp({"metadata.deletionTimestamp": "2026-11-21T12:00:00Z"}).metadata
    assert metadata.creation_timestamp == datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    assert metadata.deletion_timestamp == datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def test_what_cannot_be_read_of_a_status_is_forgotten_and_nothing_else() -> None:
    status = {"statefulSetReplicas": 6, "readyReplicas": "six", "convergence": {"state": "Odd"}, "ofTomorrow": 1}
    assert a_streamapp({"status": status}).status == StreamAppStatus(stateful_set_replicas=6)


@pytest.mark.parametrize("status", [ABSENT, None, "none"], ids=str)
def test_a_status_that_is_none_is_an_empty_one(status: object) -> None:
    assert a_streamapp({"status": status} if status is not ABSENT else {}).status == StreamAppStatus()
