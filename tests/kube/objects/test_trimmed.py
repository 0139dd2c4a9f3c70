"""What is kept of an object in the cache is enough for all that is read of it."""

import pytest

from streamapp.kube.objects import from_json, trimmed

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {
        "name": "state-words-1",
        "uid": "u",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"streamapp.dev/application-id": "words", "their/own": "x" * 1000},
    },
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "320Mi", "other": "1"}}},
    "status": {"phase": "Bound", "capacity": {"storage": "320Mi"}},
}


@pytest.mark.parametrize("phase", ["Bound", "Pending"])
def test_a_claim_from_the_cache_is_the_same_volume_with_the_same_size(phase: str) -> None:
    whole = {**CLAIM, "status": {"phase": phase}}
    (read,), (kept,) = (from_json.volumes([one], "state", "words", "words") for one in (whole, trimmed.claim(whole)))
    assert kept == read
    assert kept.requested == (320 * 2**20 if phase == "Bound" else None)


def test_of_a_claim_nothing_is_kept_that_is_not_read() -> None:
    kept = trimmed.claim(CLAIM)
    assert kept["spec"] == {"resources": {"requests": {"storage": "320Mi"}}}
    assert kept["status"] == {"phase": "Bound"}
    assert kept["metadata"]["annotations"] == {"streamapp.dev/application-id": "words"}
