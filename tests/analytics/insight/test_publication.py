"""Insight reaches its ConfigMap whole, and neither a slow job nor a bad one replaces what is better."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.insight.destination import Destination
from streamapp.analytics.insight.publication import Publication, publish
from streamapp.api.insight import (
    FILE,
    MOST_BYTES,
    Advice,
    AppInsight,
    Insight,
    to_json,
)
from streamapp.kube.client.kinds import Key
from tests.cli.cluster import Cluster
from tests.kube.api_server import ApiServer

NOW = datetime.now(UTC)
PLACE = Key("streamapp-system", "streamapp-insight")
NORTH = Destination(PLACE.namespace, PLACE.name, "north")
ORDERS = AppInsight(namespace="shop", app="orders", uid="u1")


def insight(minutes_ago: float, **changed: Any) -> Insight:
    made = NOW - timedelta(minutes=minutes_ago)
    whole: dict[str, Any] = {"cluster": "north", "made_at": made, "valid_until": made + timedelta(days=3)}
    return Insight(**whole | changed)


OURS = insight(10, apps=(ORDERS,))
NEWER = to_json(insight(5)).decode()
OLDER = to_json(insight(60)).decode()


def lay(text: str | None) -> Callable[[ApiServer], object]:
    """What lies in the ConfigMap, as another writer put it there."""
    data = {"note": "kept"} | ({} if text is None else {FILE: text})
    body = {"metadata": {"namespace": PLACE.namespace, "name": PLACE.name}, "data": data}
    return lambda server: server.put("configmaps", body)


def there(cluster: Cluster) -> dict[str, str]:
    found = cluster.do(lambda server: server.get("configmaps", PLACE.namespace, PLACE.name))
    assert found is not None
    data: dict[str, str] = found["data"]
    return data


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """An API server, and a kubeconfig for it."""
    with Cluster(tmp_path).running() as running:
        monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))
        yield running


FUTURE = to_json(insight(-60)).decode()


@pytest.mark.parametrize(
    "before", [None, "", OLDER, "{", "[" * 1_000, FUTURE], ids=["none", "", "older", "{", "deep", "future"]
)
def test_what_is_older_or_no_insight_is_replaced_and_other_keys_stay(before: str | None, cluster: Cluster) -> None:
    cluster.do(lay(before))
    assert publish([insight(1, cluster="south"), OURS], NORTH) is Publication.WRITTEN
    assert there(cluster) == {"note": "kept", FILE: to_json(OURS).decode()}
    assert cluster.written == [("PATCH", "configmaps")]


@pytest.mark.parametrize("before", [NEWER, NEWER.replace('"v":1', '"v":2,"more":[]')], ids=["same version", "another"])
def test_newer_insight_is_left_alone(before: str, cluster: Cluster) -> None:
    cluster.do(lay(before))
    assert publish([OURS], NORTH) is Publication.OVERTAKEN
    assert there(cluster)[FILE] == before
    assert cluster.written == []


def test_a_job_that_was_slow_between_reading_and_writing_does_not_replace_newer_insight(cluster: Cluster) -> None:
    cluster.do(lay(OLDER))
    cluster.before_write(lay(NEWER))
    assert publish([OURS], NORTH) is Publication.OVERTAKEN
    assert there(cluster)[FILE] == NEWER


def test_an_older_insight_that_comes_between_is_replaced(cluster: Cluster) -> None:
    cluster.do(lay(None))
    cluster.before_write(lay(OLDER))
    assert publish([OURS], NORTH) is Publication.WRITTEN
    assert there(cluster)[FILE] == to_json(OURS).decode()


def test_what_is_too_large_is_refused_and_the_old_stays(cluster: Cluster) -> None:
    cluster.do(lay(OLDER))
    words = "x" * 1000
    piece = Advice(knob=words, current=words, proposed=words, evidence=words, days=1, n=1)
    large = insight(10, apps=(ORDERS.model_copy(update={"advice": (piece,) * 8}),) * 40)
    assert len(to_json(large)) > MOST_BYTES
    with pytest.raises(AnalyticsError) as refused:
        publish([large], NORTH)
    assert refused.value.what == "ConfigMap streamapp-system/streamapp-insight"
    assert f"more than {MOST_BYTES}" in refused.value.why
    assert "the former insight stays" in refused.value.next_step
    assert there(cluster)[FILE] == OLDER
    assert cluster.written == []


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (insight(10, cluster="south"), "the record has no application of cluster 'north', but of 'south'"),
        (insight(3 * 24 * 60 + 1), "the operator could not use it: it is no longer valid"),
    ],
    ids=["another cluster", "expired"],
)
def test_what_the_operator_would_refuse_is_not_written(found: Insight, why: str, cluster: Cluster) -> None:
    cluster.do(lay(OLDER))
    with pytest.raises(AnalyticsError) as refused:
        publish([found], NORTH)
    assert refused.value.why == why
    assert there(cluster)[FILE] == OLDER


def test_a_config_map_that_is_not_there_is_not_made(cluster: Cluster) -> None:
    with pytest.raises(AnalyticsError) as refused:
        publish([OURS], NORTH)
    assert "kubectl create configmap streamapp-insight --namespace streamapp-system" in refused.value.next_step
    assert cluster.written == []


def test_a_refusal_of_the_api_server_is_told_and_the_old_stays(cluster: Cluster) -> None:
    cluster.do(lay(OLDER))
    cluster.refuse_write(403, "configmaps is forbidden: User cannot patch")
    with pytest.raises(AnalyticsError) as refused:
        publish([OURS], NORTH)
    assert "cannot patch" in refused.value.why
    assert there(cluster)[FILE] == OLDER


@pytest.mark.parametrize("text", ["", "name", "/name", "namespace/", "a/b/c"])
def test_a_destination_is_a_namespace_and_a_name(text: str) -> None:
    with pytest.raises(ValueError, match="is not NAMESPACE/NAME"):
        Destination.of(text, "")
    assert Destination.of("streamapp-system/streamapp-insight", "north") == NORTH
