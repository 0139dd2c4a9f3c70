"""Live objects against manifests: which differences another writer made."""

from typing import Any

import pytest

from streamapp.api.objects import drift

Json = dict[str, Any]
RETAIN = {"whenScaled": "Retain", "whenDeleted": "Retain"}
MANIFEST: Json = {"spec": {"updateStrategy": {"type": "OnDelete"}, "persistentVolumeClaimRetentionPolicy": RETAIN}}
STATELESS: Json = {"spec": {"updateStrategy": {"type": "OnDelete"}}}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
MANAGER = "streamapp-operator"


@pytest.mark.parametrize(
    ("manifest", "spec", "found"),
    [
        (MANIFEST, {**ON_DELETE, "persistentVolumeClaimRetentionPolicy": RETAIN}, ""),
        (MANIFEST, ON_DELETE, ""),
        (MANIFEST, {"updateStrategy": {"type": "RollingUpdate"}}, "spec.updateStrategy: RollingUpdate"),
        (MANIFEST, {}, "spec.updateStrategy: RollingUpdate"),
        (
            MANIFEST,
            {**ON_DELETE, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Retain"}},
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Delete",
        ),
        (
            MANIFEST,
            {**ON_DELETE, "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}},
            "spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Delete",
        ),
        (STATELESS, {**ON_DELETE, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}, ""),
    ],
)
@pytest.mark.guarantee(4)
def test_what_kubernetes_restarts_pods_and_deletes_claims_by_is_named(manifest: Json, spec: Json, found: str) -> None:
    assert drift.removal_drift(manifest["spec"], {"spec": spec}) == found


@pytest.mark.parametrize(("spec", "first"), [({}, 0), ({"ordinals": {"start": 0}}, 0), ({"ordinals": {"start": 2}}, 2)])
def test_ordinals_begin_where_they_were_moved(spec: Json, first: int) -> None:
    assert drift.first_ordinal({"spec": spec}) == first


def test_the_first_field_that_a_write_would_change_is_named_with_its_path() -> None:
    live = {"spec": {"template": {"spec": {"containers": [{"image": "b"}], "nodeName": ""}}}}
    wanted = {"spec": {"template": {"spec": {"containers": [{"image": "a"}], "nodeName": ""}}}}
    assert drift.difference(wanted, live) == "spec.template.spec.containers"
    assert drift.difference(live, live) == ""


@pytest.mark.parametrize(
    ("live", "is_covered"),
    [
        (
            {"spec": {"a": 1, "more": 2}, "selector": {"app": "x"}, "owners": [{"uid": "1", "more": 1}, {"uid": "2"}]},
            True,
        ),
        ({"spec": {"a": 2}, "selector": {"app": "x"}, "owners": [{"uid": "1"}]}, False),
        ({"spec": {"a": 1}, "selector": {"app": "x", "version": "2"}, "owners": [{"uid": "1"}]}, False),
        ({"spec": {"a": 1}, "selector": {"app": "x"}, "owners": [{"uid": "2"}]}, False),
        ({}, False),
    ],
    ids=["more fields", "another value", "a narrower selector", "another owner", "gone"],
)
def test_an_object_covers_a_manifest_with_every_field_of_it(live: Json, is_covered: bool) -> None:
    wanted = {"spec": {"a": 1}, "selector": {"app": "x"}, "owners": [{"uid": "1"}]}
    assert drift.covers(live, wanted) is is_covered


def seeded(image: str) -> Json:
    """A StatefulSet with the seeder and an init container of the user."""
    pods = [{"name": "streamapp-seed", "image": image}, {"name": "other", "image": image}]
    return {"spec": {"template": {"spec": {"initContainers": pods}}}}


def owned(fields: Json, manager: str = MANAGER) -> Json:
    """The entry of a manager that owns these fields of the init containers."""
    place = {"f:spec": {"f:template": {"f:spec": {"f:initContainers": fields}}}}
    return {"metadata": {"managedFields": [{"manager": manager, "fieldsV1": place}]}}


IMAGE: Json = {'k:{"name":"streamapp-seed"}': {"f:image": {}}}


@pytest.mark.parametrize(
    ("owners", "image"),
    [
        (owned(IMAGE), "seed:1"),
        (owned({}), "seed:1"),
        (owned({'k:{"name":"streamapp-seed"}': {"f:name": {}}}), "seed:2"),
        (owned(IMAGE, "kubectl-set"), "seed:2"),
        ({}, "seed:2"),
    ],
    ids=["ours", "ours as a list", "another writer's", "another manager's", "not on record"],
)
def test_images_of_our_own_stay_as_we_wrote_them_and_not_as_another_did(owners: Json, image: str) -> None:
    kept = drift.with_images_of(seeded("seed:2"), {**seeded("seed:1"), **owners}, MANAGER)
    first, other = kept["spec"]["template"]["spec"]["initContainers"]
    assert (first["image"], other["image"]) == (image, "seed:2")
