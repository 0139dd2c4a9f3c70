"""Laws of the resource, on objects that nobody thought of."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from streamapp.api.status.translate import app_of, policy_of
from streamapp.api.v1alpha1.spec import StreamAppSpec
from streamapp.api.v1alpha1.status import (
    ConditionStatus,
    ForcedBy,
    ForcedStatus,
    LastStep,
    MemberStatus,
    ScaleDownStatus,
    StreamAppStatus,
)
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp, parse
from streamapp.core.actions.decision import Answer
from streamapp.core.facts.policy import LearnerSource
from streamapp.core.reasons import Reason
from tests.streamapps import SPEC, changed, stored

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10**13) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)

PATHS = st.sampled_from(
    [
        "spec",
        "status",
        *(
            f"spec.{name}"
            for name in ("replicas", "applicationId", "topology", "kafka", "template", "container", "state")
        ),
        *(f"spec.{name}" for name in ("learners", "scaleDown", "rollout", "paused", "dryRun", "odd")),
        *(
            f"spec.template.{name}"
            for name in ("metadata", "spec", "metadata.labels", "spec.containers", "spec.volumes")
        ),
        *(f"spec.template.spec.containers.0.{name}" for name in ("name", "volumeMounts", "securityContext")),
        *(
            f"spec.state.{name}"
            for name in ("mountPath", "stateDir", "claimName", "volumeClaimTemplate", "retention", "maxIdleTime")
        ),
        "spec.state.volumeClaimTemplate.resources.requests.storage",
        "spec.state.volumeClaimTemplate.accessModes",
        *(f"spec.scaleDown.{name}" for name in ("policy", "reason", "timeout", "stabilizationWindow", "allowZero")),
        *(f"spec.learners.{name}" for name in ("acceptableRecoveryLag", "assignor", "triggerRebalance")),
        *(f"status.{name}" for name in ("statefulSetReplicas", "conditions", "lastSteps", "members", "scaleDown")),
    ]
)


@given(PATHS, JSON)
def test_whatever_somebody_writes_is_read_or_told_in_sentences(path: str, value: Any) -> None:
    found = parse(changed(stored(), {path: value}))
    app = app_of(found, history=())
    if isinstance(found, StreamApp):
        policy_of(found)
        assert app.fault is None
    else:
        assert isinstance(found, InvalidStreamApp)
        assert found.faults
        assert app.fault == found.sentence
        for fault in found.faults:
            assert fault.field.startswith(("spec", "metadata.name"))
            assert fault.sentence.startswith(("must ", "is required", "is not valid"))
            assert "Traceback" not in fault.sentence


SPECS = st.fixed_dictionaries(
    {"replicas": st.integers(1, 1000), "applicationId": st.from_regex(r"\A[a-z]{1,20}\Z")},
    optional={
        "topology": st.text(max_size=50),
        "paused": st.booleans(),
        "dryRun": st.booleans(),
        "learners": st.fixed_dictionaries(
            {}, optional={"acceptableRecoveryLag": st.integers(0, 10**12), "triggerRebalance": st.booleans()}
        ),
        "rollout": st.fixed_dictionaries({"policy": st.sampled_from(["WhenCaughtUp", "Paused", "Immediate"])}),
        "scaleDown": st.fixed_dictionaries(
            {"reason": st.text(min_size=1, max_size=20).filter(str.strip)},
            optional={
                "policy": st.sampled_from(["Hold", "Immediate"]),
                "onTimeout": st.sampled_from(["Wait", "GiveUp", "Proceed"]),
                "timeout": st.sampled_from(["1m", "90m", "1h30m", "720h"]),
            },
        ),
    },
).map(lambda fields: {**SPEC, **fields})


@given(SPECS)
def test_a_spec_is_the_same_after_it_was_written_and_read(spec: dict[str, Any]) -> None:
    model = StreamAppSpec.model_validate(spec)
    text = model.model_dump_json(by_alias=True, exclude_none=True)
    assert StreamAppSpec.model_validate_json(text) == model
    assert StreamAppSpec.model_validate(json.loads(text)) == model


Model = TypeVar("Model", bound=BaseModel)


def of(model: type[Model], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Model]:
    return st.fixed_dictionaries(fields).map(model.model_validate)


COUNTS = st.none() | st.integers(0, 1000)
TIMES = st.integers(0, 10**9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
SPANS = st.integers(0, 10**9).map(lambda milliseconds: timedelta(milliseconds=milliseconds))
FORCED = st.none() | st.builds(ForcedStatus, by=st.sampled_from(ForcedBy), reason=st.text(max_size=20))
REASONS = st.sampled_from([reason.name for reason in Reason])

STATUSES = st.builds(
    StreamAppStatus,
    observed_generation=COUNTS,
    stateful_set_replicas=COUNTS,
    learner_source=st.none() | st.sampled_from(LearnerSource),
    scale_down=st.none()
    | of(
        ScaleDownStatus,
        hold_id=st.none() | st.text(max_size=12),
        target=st.integers(0, 1000),
        since=st.none() | TIMES,
        next_ordinal=COUNTS,
        reason=REASONS,
        forced=FORCED,
    ),
    members=st.lists(st.builds(MemberStatus, ordinal=st.integers(0, 1000), active=COUNTS), max_size=3).map(tuple),
    last_steps=st.lists(
        of(
            LastStep,
            from_=st.integers(1, 1000),
            to=st.integers(0, 1000),
            at=TIMES,
            duration=SPANS,
            downtime_max=st.none() | SPANS,
            forced=FORCED,
        ),
        max_size=3,
    ).map(tuple),
    conditions=st.lists(
        of(
            ConditionStatus,
            type=st.text(min_size=1, max_size=12),
            status=st.sampled_from(Answer),
            observed_generation=st.integers(0, 1000),
            last_transition_time=TIMES,
            reason=REASONS,
            message=st.text(max_size=40),
        ),
        max_size=3,
    ).map(tuple),
)


@given(STATUSES)
def test_a_status_is_the_same_after_it_was_written_and_read(status: StreamAppStatus) -> None:
    written = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    found = parse(changed(stored(), {"status": json.loads(json.dumps(written))}))
    assert found.status == status
