"""Which pods and claims belong to an ordinal: those that a StatefulSet names so, and no others."""

from typing import TYPE_CHECKING, Any

import pytest

from streamapp.core.facts.ids import Ordinal
from streamapp.kube.objects.from_json import PodVersion, pods, volumes

if TYPE_CHECKING:
    from streamapp.core.facts.workload import Pod

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


def test_an_orphan_beyond_all_replicas_is_not_of_the_statefulset() -> None:
    endings = ("0", "999", "1000", "2147483646", "9" * 240)
    orphans = [a_pod(ending) for ending in endings]
    assert [pod.ordinal for pod in pods(orphans, "words", None, "words")] == [0, 999]
    owner = [{"controller": True, "uid": "s"}]
    owned = [{**one, "metadata": {**one["metadata"], "ownerReferences": owner}} for one in orphans]
    assert [str(pod.ordinal) for pod in pods(owned, "words", "s", "words")] == [*endings]


def test_a_pod_is_read_again_only_in_another_version() -> None:
    known: dict[PodVersion, Pod] = {}
    first = {"metadata": {"name": "words-0", "uid": "a", "resourceVersion": "1"}, "spec": a_pod("0")["spec"]}
    gone = {"metadata": {"name": "words-1", "uid": "b", "resourceVersion": "1"}, "spec": a_pod("1")["spec"]}
    marked = {**first["metadata"], "resourceVersion": "2", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    (before, _) = pods([first, gone], "words", None, "words", known)
    (same,) = pods([first], "words", None, "words", known)
    assert (same is before, [uid for uid, *_ in known]) == (True, ["a"])
    (after,) = pods([{**first, "metadata": marked}], "words", None, "words", known)
    assert (before.terminating, after.terminating, len(known)) == (False, True, 1)
    (other,) = pods([first], "words", None, "another", known)
    assert (other == before, other is before) == (True, False)


def test_pods_without_a_version_are_always_read() -> None:
    known: dict[PodVersion, Pod] = {}
    assert pods([a_pod("0")], "words", None, "words", known) == pods([a_pod("0")], "words", None, "words")
    assert known == {}
