"""In which zone a pod is."""

from typing import Any

import pytest

from streamapp.api.names import ZONE
from streamapp.kube.objects import trimmed
from streamapp.kube.objects.from_json import pods, zone_of

Json = dict[str, Any]


def a_pod(labels: Json | None) -> Json:
    metadata: Json = {"name": "words-0", "uid": "p", "ownerReferences": [{"uid": "sts", "controller": True}]}
    if labels is not None:
        metadata["labels"] = labels
    return {"metadata": metadata, "spec": {"containers": [{"name": "app"}]}, "status": {}}


@pytest.mark.parametrize(("labels", "zone"), [({ZONE: "eu-1a"}, "eu-1a"), ({}, ""), (None, "")])
def test_a_pod_has_the_zone_of_its_label(labels: Json | None, zone: str) -> None:
    (found,) = pods([a_pod(labels)], "words", "sts", "app")
    assert found.zone == zone
    (kept,) = pods([trimmed.pod(a_pod(labels))], "words", "sts", "app")
    assert kept.zone == zone


def test_the_cache_keeps_the_zone_of_a_node_and_no_other_label() -> None:
    node = {"metadata": {"name": "n", "uid": "u", "labels": {ZONE: "eu-1a", "arch": "amd64"}}, "spec": {}}
    assert trimmed.node(node)["metadata"]["labels"] == {ZONE: "eu-1a"}
    assert zone_of(trimmed.node(node)) == "eu-1a"
