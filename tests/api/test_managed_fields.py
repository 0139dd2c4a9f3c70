import json
from datetime import UTC, datetime

import pytest

from streamapp.api.managed_fields import asked_at, told_at, writers_of_replicas
from tests.streamapps import Json


def written(*entries: object) -> Json:
    return {"metadata": {"managedFields": list(entries)}}


def at(minute: int) -> datetime:
    return datetime(2026, 11, 21, 12, minute, tzinfo=UTC)


def test_the_status_and_the_rest_have_times_of_their_own() -> None:
    resource = written(
        {"manager": "kubectl", "time": "2026-11-21T12:01:00Z"},
        {"manager": "autoscaler", "subresource": "scale", "time": "2026-11-21T12:02:00Z"},
        {"manager": "streamapp-operator", "subresource": "status", "time": "2026-11-21T12:03:00Z"},
        {"manager": "old-operator", "subresource": "status", "time": "2026-11-21T12:00:00Z"},
    )
    assert (told_at(resource), asked_at(resource)) == (at(3), at(2))


@pytest.mark.parametrize(
    "resource",
    [
        {},
        {"metadata": None},
        {"metadata": {"managedFields": "none"}},
        written(),
        written("text"),
        written({"manager": "kubectl"}),
        written({"time": "yesterday"}),
        written({"time": 5}),
        written({"time": "2026-11-21T12:01:00"}),
    ],
    ids=str,
)
def test_what_is_not_on_record_is_not_known(resource: Json) -> None:
    assert (told_at(resource), asked_at(resource)) == (None, None)


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
OWNS: Json = {"f:spec": {"f:replicas": {}, "f:template": {}}}


def entry(manager: str, *, subresource: str = "", operation: str = "Update", fields: object = OWNS) -> Json:
    found: Json = {"manager": manager, "operation": operation, "fieldsV1": fields, "time": "2026-11-21T12:01:00Z"}
    return found | ({"subresource": subresource} if subresource else {})


def wishing(replicas: int, *entries: Json, applied: str | None = None) -> Json:
    annotations = {} if applied is None else {LAST_APPLIED: applied}
    return {"metadata": {"managedFields": list(entries), "annotations": annotations}, "spec": {"replicas": replicas}}


AUTOSCALER = entry("kube-controller-manager", subresource="scale")


@pytest.mark.parametrize(
    ("resource", "writers"),
    [
        pytest.param(wishing(3, AUTOSCALER), (), id="an autoscaler alone"),
        pytest.param(wishing(3, AUTOSCALER, entry("kubectl", subresource="scale")), (), id="a person by scale"),
        pytest.param(wishing(3, AUTOSCALER, entry("argocd", operation="Apply")), ("argocd",), id="an apply"),
        pytest.param(wishing(3, entry("kubectl-edit"), entry("helm")), ("helm", "kubectl-edit"), id="updates, sorted"),
        pytest.param(
            wishing(3, entry("argocd", operation="Apply", fields={"f:spec": {"f:template": {}}})), (), id="other fields"
        ),
        pytest.param(
            wishing(3, entry("streamapp-operator", subresource="status", operation="Apply")), (), id="our status"
        ),
        pytest.param(wishing(1, entry("kubectl-create")), (), id="the API server filled in what was left out"),
        pytest.param(wishing(1, entry("argocd", operation="Apply")), ("argocd",), id="an apply of the default"),
        pytest.param(
            wishing(5, AUTOSCALER, applied=json.dumps({"spec": {"replicas": 3}})),
            ("kubectl-client-side-apply",),
            id="kubectl apply, overwritten since",
        ),
        pytest.param(wishing(5, applied=json.dumps({"spec": {"template": {}}})), (), id="kubectl apply without it"),
        pytest.param(wishing(5, applied="{"), (), id="an annotation that is no JSON"),
        pytest.param(wishing(5, applied="[1]"), (), id="an annotation that is no object"),
        pytest.param(wishing(5, entry("x", fields="f:spec"), entry("")), (), id="nonsense"),
        pytest.param({}, (), id="nothing"),
        pytest.param({"metadata": None, "spec": None}, (), id="less than nothing"),
    ],
)
def test_who_writes_the_replicas_beside_the_scale_subresource(resource: Json, writers: tuple[str, ...]) -> None:
    assert writers_of_replicas(resource) == writers
