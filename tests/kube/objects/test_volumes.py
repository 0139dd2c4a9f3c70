"""Which claims are volumes that something can rest on."""

from typing import Any

import pytest

from streamapp.core.facts.ids import Ordinal
from streamapp.kube.objects import from_json


def a_claim(number: int, phase: str = "Bound", **metadata: str) -> dict[str, Any]:
    return {"metadata": {"name": f"state-words-{number}", "namespace": "n", **metadata}, "status": {"phase": phase}}


@pytest.mark.guarantee(4)
def test_a_claim_that_goes_or_has_lost_its_volume_is_none_unless_its_user_gives_it_up() -> None:
    claims = [
        a_claim(0),
        a_claim(1, "Pending"),
        a_claim(2, "Lost"),
        a_claim(3, deletionTimestamp="2026-11-21T11:58:00Z"),
    ]
    found = from_json.volumes(claims, "state", "words", "words")
    assert [volume.ordinal for volume in found] == [0, 1]
    given_up = from_json.volumes(claims, "state", "words", "words", given_up={Ordinal(2), Ordinal(3)})
    assert [(volume.ordinal, volume.deleting) for volume in given_up] == [(0, False), (1, False), (3, True)]
