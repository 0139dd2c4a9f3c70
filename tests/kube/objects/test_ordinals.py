"""Which pods and claims belong to an ordinal: those that a StatefulSet names so, and no others."""

from typing import Any

import pytest

from streamapp.core.facts.ids import Ordinal
from streamapp.kube.objects.from_json import pods, volumes

ALMOST = ("00", "01", "0-0", "\N{ARABIC-INDIC DIGIT ONE}", "", "x")
"""Endings of names that other objects can have; two objects of one ordinal would end each pass in an error."""


def a_claim(ending: str) -> dict[str, Any]:
    return {"metadata": {"name": f"state-words-{ending}", "labels": {"streamapp.dev/app": "words"}}}


def a_pod(ending: str) -> dict[str, Any]:
    return {"metadata": {"name": f"words-{ending}", "uid": ending}, "spec": {"containers": [{"name": "words"}]}}


@pytest.mark.parametrize("ending", ALMOST)
def test_a_claim_whose_name_only_looks_like_an_ordinal_is_no_volume(ending: str) -> None:
    found = volumes([a_claim("0"), a_claim("1"), a_claim(ending)], "state", "words", "words")
    assert [volume.ordinal for volume in found] == [Ordinal(0), Ordinal(1)]


def test_a_pod_whose_whole_name_is_a_number_is_not_of_the_statefulset() -> None:
    bare = {**a_pod("0"), "metadata": {"name": "7", "uid": "7"}}
    assert [pod.ordinal for pod in pods([a_pod("0"), bare], "words", None, "words")] == [Ordinal(0)]


@pytest.mark.parametrize("ending", ALMOST)
def test_a_pod_whose_name_only_looks_like_an_ordinal_is_not_of_the_statefulset(ending: str) -> None:
    found = pods([a_pod("0"), a_pod("1"), a_pod(ending)], "words", None, "words")
    assert [pod.ordinal for pod in found] == [Ordinal(0), Ordinal(1)]
