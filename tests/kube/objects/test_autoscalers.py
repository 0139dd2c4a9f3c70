"""What is read of HorizontalPodAutoscalers, in the form in which the API server gives them."""

from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.facts.autoscalers import Aim, Autoscaler
from streamapp.kube.objects.autoscalers import by_target

Json = dict[str, Any]


def an_hpa(
    name: str = "cpu",
    target: tuple[str, str, str] = ("streamapp.dev/v1alpha1", "StreamApp", "counter"),
    *conditions: Json,
    **spec: Any,
) -> Json:
    """One HorizontalPodAutoscaler."""
    ref = dict(zip(("apiVersion", "kind", "name"), target, strict=True))
    return {
        "metadata": {"name": name, "namespace": "demo"},
        "spec": {"scaleTargetRef": ref, "minReplicas": 2, "maxReplicas": 6, **spec},
        "status": {"conditions": list(conditions)} if conditions else {},
    }


def says(kind: str, status: str, reason: str = "Because", message: str = "") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}


CPU = Autoscaler(name="cpu", aim=Aim.STREAM_APP, least=2, most=6)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (("streamapp.dev/v1alpha1", "StreamApp", "counter"), {"counter": Aim.STREAM_APP}),
        (("streamapp.dev/v1beta1", "StreamApp", "counter"), {"counter": Aim.STREAM_APP}),
        (("apps/v1", "StatefulSet", "counter"), {"counter": Aim.STATEFUL_SET}),
        (("apps/v1", "Deployment", "counter"), {}),
        (("example.dev/v1", "StreamApp", "counter"), {}),
        (("v1", "StatefulSet", "counter"), {}),
    ],
    ids=str,
)
def test_what_it_aims_at_is_told_by_group_kind_and_name(target: tuple[str, str, str], found: dict[str, Aim]) -> None:
    given = by_target([an_hpa("cpu", target)])
    assert {name: [one.aim for one in several] for name, several in given.items()} == {
        name: [aim] for name, aim in found.items()
    }


def test_those_of_one_target_stand_together() -> None:
    live = [an_hpa(), an_hpa("lag", maxReplicas=9), an_hpa("other", ("apps/v1", "StatefulSet", "orders"))]
    assert by_target(live) == {
        "counter": (CPU, Autoscaler(name="lag", aim=Aim.STREAM_APP, least=2, most=9)),
        "orders": (Autoscaler(name="other", aim=Aim.STATEFUL_SET, least=2, most=6),),
    }


@pytest.mark.parametrize(
    ("conditions", "cannot_act"),
    [
        pytest.param((), None, id="it has not looked yet"),
        pytest.param((says("AbleToScale", "True"), says("ScalingActive", "True")), None, id="all is well"),
        pytest.param((says("ScalingLimited", "False"),), None, id="another condition"),
        pytest.param((says("ScalingLimited", "True", "TooManyReplicas", "too many"),), None, id="at its limit"),
        pytest.param((says("ScalingActive", "Unknown"),), None, id="it does not know"),
        pytest.param(
            (says("ScalingActive", "False", "FailedGetResourceMetric", "no metrics"),), "no metrics", id="no metrics"
        ),
        pytest.param((says("AbleToScale", "False", "FailedGetScale"),), "FailedGetScale", id="without a message"),
        pytest.param(
            (says("AbleToScale", "False", "A", "one"), says("ScalingActive", "False", "B", "two")),
            "one; two",
            id="both",
        ),
        pytest.param((says("ScalingActive", "False", "ScalingDisabled", "zero"),), None, id="zero replicas"),
    ],
)
def test_why_it_cannot_act_is_told_in_its_own_words(conditions: tuple[Json, ...], cannot_act: str | None) -> None:
    (found,) = by_target([an_hpa("cpu", ("streamapp.dev/v1", "StreamApp", "c"), *conditions)])["c"]
    assert found.cannot_act == cannot_act


def test_the_record_has_the_reason_word_and_not_the_message() -> None:
    def found(*conditions: Json) -> tuple[str, str]:
        (one,) = by_target([an_hpa("cpu", ("streamapp.dev/v1", "StreamApp", "c"), *conditions)])["c"]
        return one.hindrance, one.limited_by

    blind = says("ScalingActive", "False", "FailedGetResourceMetric", "no metrics for 31s")
    low = says("ScalingLimited", "True", "TooFewReplicas", "the desired replica count is less than the minimum")
    assert found() == ("", "")
    assert found(says("ScalingLimited", "False", "DesiredWithinRange"), says("ScalingActive", "True")) == ("", "")
    assert found(blind, low) == ("FailedGetResourceMetric", "TooFewReplicas")
    assert found(says("AbleToScale", "False", ""), says("ScalingLimited", "True", "")) == (
        "AbleToScale",
        "ScalingLimited",
    )
    assert found(says("ScalingActive", "False", "ScalingDisabled", "zero")) == ("", "")


@pytest.mark.parametrize(
    ("behavior", "windows"),
    [
        (None, (None, None)),
        ({"scaleUp": {"policies": []}}, (None, None)),
        (
            {"scaleUp": {"stabilizationWindowSeconds": 0}, "scaleDown": {"stabilizationWindowSeconds": 600}},
            (timedelta(0), timedelta(minutes=10)),
        ),
    ],
)
def test_its_windows_are_those_of_the_spec(behavior: Json | None, windows: tuple[timedelta | None, ...]) -> None:
    (one,) = by_target([an_hpa(behavior=behavior)])["counter"]
    assert (one.up_window, one.down_window) == windows


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ((), (None, None, None)),
        ((says("AbleToScale", "True"),), (3, 5, None)),
        ((says("ScalingActive", "True"),), (3, 5, True)),
        ((says("ScalingActive", "False", "ScalingDisabled"),), (3, 5, False)),
        ((says("ScalingActive", "Unknown"),), (3, 5, None)),
    ],
)
def test_its_numbers_count_once_it_has_looked(
    conditions: tuple[Json, ...], found: tuple[int | None, int | None, bool | None]
) -> None:
    live = an_hpa()
    live["status"] = {"currentReplicas": 3, "desiredReplicas": 5, "conditions": list(conditions) or None}
    (one,) = by_target([live])["counter"]
    assert (one.current, one.desired, one.is_active) == found


def test_what_is_left_out_is_what_kubernetes_says_it_means() -> None:
    live = an_hpa()
    del live["spec"]["minReplicas"], live["status"]
    assert by_target([live]) == {"counter": (Autoscaler(name="cpu", aim=Aim.STREAM_APP, least=1, most=6),)}
