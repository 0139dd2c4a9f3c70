from copy import deepcopy
from typing import Any
from unittest.mock import Mock

import pytest

from streamapp.api.names import CONTAINER
from streamapp.api.objects import manifests
from streamapp.api.objects.manifests import Installation
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.core.facts.workload import Budget
from tests.streamapps import ABSENT, UID, a_streamapp

Json = dict[str, Any]

HERE = Installation(name="blue", seed_image="registry.example/seed:1")

OWNER: Json = {
    "apiVersion": "streamapp.dev/v1alpha1",
    "kind": "StreamApp",
    "name": "wordcount",
    "uid": UID,
    "controller": True,
    "blockOwnerDeletion": True,
}
METADATA: Json = {
    "name": "wordcount",
    "namespace": "demo",
    "labels": {
        "streamapp.dev/app": "wordcount",
        "app.kubernetes.io/managed-by": "streamapp-operator",
        "streamapp.dev/operator": "blue",
    },
    "ownerReferences": [OWNER],
}
LAST_WORDS = {"terminationMessagePolicy": "FallbackToLogsOnError"}
SEEDER: Json = {
    "name": "streamapp-seed",
    "image": "registry.example/seed:1",
    "imagePullPolicy": "IfNotPresent",
    "args": [
        "--state-dir=/var/lib/streams",
        "--application-id=wordcount",
        "--ordinal=$(ORDINAL)",
        f"--id-suffix={str(seeded_process_id(UID, Ordinal(7)))[9:]}",
        "--max-age=20h",
        "--report=/dev/termination-log",
    ],
    "env": [
        {
            "name": "ORDINAL",
            "valueFrom": {
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}
            },
        }
    ],
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True,
    },
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "FallbackToLogsOnError",
    "volumeMounts": [{"name": "state", "mountPath": "/var/lib/streams"}],
}


def made(changes: Json | None = None) -> Json:
    """The spec of the StatefulSet of the sound StreamApp."""
    spec: Json = manifests.statefulset(a_streamapp(changes), HERE)["spec"]
    return spec


def pod(changes: Json | None = None) -> Json:
    template: Json = made(changes)["template"]["spec"]
    return template


VOLUME_CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {
        "name": "state",
        "labels": {"streamapp.dev/app": "wordcount", "app.kubernetes.io/managed-by": "streamapp-operator"},
        "annotations": {"streamapp.dev/application-id": "wordcount"},
    },
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "20Gi"}},
        "storageClassName": "fast",
    },
}


@pytest.mark.guarantee(4)
def test_a_streamapp_becomes_a_statefulset() -> None:
    user = a_streamapp().spec.template["spec"]
    app, sidecar = user["containers"]
    whole = manifests.statefulset(a_streamapp(), HERE)
    # The hash is pinned too: whatever changes it restarts every pod of every application when the operator is upgraded.
    assert whole == {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {**METADATA, "annotations": {"streamapp.dev/template-hash": "6bcf5a8d2f4bb3353cd7d7449c2c46da"}},
        "spec": {
            "serviceName": "wordcount",
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"streamapp.dev/app": "wordcount"}},
            "template": {
                "metadata": {"labels": {"team": "words", "streamapp.dev/app": "wordcount"}},
                "spec": {
                    **user,
                    "initContainers": [SEEDER],
                    "containers": [
                        {**app, **LAST_WORDS, "volumeMounts": [{"name": "state", "mountPath": "/var/lib/streams"}]},
                        sidecar,
                    ],
                },
            },
            "volumeClaimTemplates": [VOLUME_CLAIM],
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Retain", "whenDeleted": "Retain"},
        },
    }


def test_replicas_are_there_only_where_they_are_asked_for() -> None:
    whole = manifests.statefulset(a_streamapp(), HERE)
    assert "replicas" not in whole["spec"]
    assert manifests.with_replicas(whole, 6) == {**whole, "spec": {**whole["spec"], "replicas": 6}}
    assert "replicas" not in whole["spec"]


def test_without_state_nothing_is_mounted_seeded_or_claimed() -> None:
    user = a_streamapp().spec.template["spec"]
    app, sidecar = user["containers"]
    spec = made({"spec.state": ABSENT})
    assert spec == {
        "serviceName": "wordcount",
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": {"streamapp.dev/app": "wordcount"}},
        "template": {
            "metadata": {
                "labels": {"team": "words", "streamapp.dev/app": "wordcount"},
                "annotations": {"streamapp.dev/container": app["name"]},
            },
            "spec": {**user, "containers": [{**app, **LAST_WORDS}, sidecar]},
        },
    }


@pytest.mark.guarantee(7)
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"sidecar": {"volumeMounts": [{"name": "state", "mountPath": "/of/the/app"}]}}, {CONTAINER: "app"}),
        ({"state": ABSENT}, {CONTAINER: "app"}),
        ({"state": ABSENT, "annotations": {"a": "b", CONTAINER: "sidecar"}}, {"a": "b", CONTAINER: "app"}),
        ({"state": ABSENT, "alone": True}, None),
    ],
    ids=["one mounts the claim", "both mount it", "no state", "the user's annotations stay", "a single container"],
)
def test_a_pod_says_which_container_is_the_applications_where_nothing_else_does(
    changes: dict[str, Any], expected: dict[str, str] | None
) -> None:
    app, sidecar = {"name": "app", "image": "a"}, {"name": "sidecar", "image": "b", **changes.get("sidecar", {})}
    containers = [app] if "alone" in changes else [app, sidecar]
    spec = {"spec.template.spec": {"containers": containers}, "spec.container": "app"}
    spec |= {"spec.state": ABSENT} if "state" in changes else {}
    spec |= {"spec.template.metadata": {"annotations": changes["annotations"]}} if "annotations" in changes else {}
    assert made(spec)["template"]["metadata"].get("annotations") == expected


@pytest.mark.parametrize("policy", ["File", "FallbackToLogsOnError"])
def test_the_users_own_termination_message_policy_stays(policy: str) -> None:
    user = deepcopy(a_streamapp().spec.template["spec"])
    user["containers"][0]["terminationMessagePolicy"] = policy
    (app, sidecar) = made({"spec.template.spec": user})["template"]["spec"]["containers"]
    assert app["terminationMessagePolicy"] == policy
    assert "terminationMessagePolicy" not in sidecar


def test_the_users_own_template_is_not_touched() -> None:
    app = a_streamapp()
    manifests.statefulset(app, HERE)
    assert app == a_streamapp()


def test_a_template_without_metadata_gets_the_label() -> None:
    template = made({"spec.template.metadata": ABSENT})["template"]
    assert template["metadata"] == {"labels": {"streamapp.dev/app": "wordcount"}}


def test_annotations_and_labels_of_the_user_stay() -> None:
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    template = made({"spec.template.metadata": metadata})["template"]
    assert template["metadata"] == {
        "labels": {"a": "b", "streamapp.dev/app": "wordcount"},
        "annotations": {"c": "d"},
    }


def test_a_volume_that_the_user_has_mounted_is_not_mounted_twice() -> None:
    mounts = [{"name": "tmp", "mountPath": "/tmp"}, {"name": "state", "mountPath": "/var/lib/streams"}]
    container = pod({"spec.template.spec.containers.0.volumeMounts": mounts})["containers"][0]
    assert container["volumeMounts"] == mounts


def test_the_volume_goes_to_the_container_of_the_application() -> None:
    app, sidecar = pod({"spec.container": "sidecar"})["containers"]
    assert "volumeMounts" not in app
    assert sidecar["volumeMounts"] == [{"name": "state", "mountPath": "/var/lib/streams"}]


@pytest.mark.guarantee(4)
def test_the_seeder_comes_right_before_the_application_and_before_what_the_user_runs() -> None:
    """What others write there makes old state look young, and what others wait for lets young state become old."""
    first, fetch, last = pod({"spec.template.spec.initContainers": [{"name": "fetch"}]})["initContainers"]
    assert fetch == {"name": "fetch"}
    assert last == SEEDER
    assert first == {**SEEDER, "name": "streamapp-seed-first"}


def test_the_seeder_is_told_where_the_state_is() -> None:
    changes = {"spec.state.stateDir": "/var/lib/streams/$(HOME)/kafka", "spec.state.maxIdleTime": "1h30m"}
    seeder = pod(changes)["initContainers"][0]
    assert seeder["args"][0] == "--state-dir=/var/lib/streams/$$(HOME)/kafka"
    assert seeder["args"][4] == "--max-age=1h30m"
    assert seeder["volumeMounts"] == [{"name": "state", "mountPath": "/var/lib/streams"}]


@pytest.mark.parametrize(
    ("of_pod", "of_container", "user"),
    {
        "the pod names the user": ({"runAsUser": 10001}, {}, {"runAsNonRoot": True}),
        "the container names another": (
            {"runAsUser": 10001},
            {"runAsUser": 10002, "runAsGroup": 10003},
            {"runAsUser": 10002, "runAsGroup": 10003, "runAsNonRoot": True},
        ),
        "nobody names one": ({"fsGroup": 10001}, {"privileged": True}, {"runAsNonRoot": True}),
        "root": ({}, {"runAsUser": 0}, {"runAsUser": 0, "runAsNonRoot": False}),
        "root for the pod, not for the container": (
            {"runAsUser": 0},
            {"runAsUser": 5},
            {"runAsUser": 5, "runAsNonRoot": True},
        ),
        "a level of SELinux": (
            {},
            {"seLinuxOptions": {"level": "s0:c1"}},
            {"seLinuxOptions": {"level": "s0:c1"}, "runAsNonRoot": True},
        ),
        "nothing at all": (None, None, {"runAsNonRoot": True}),
    }.values(),
    ids=str,
)
def test_the_seeder_has_the_applications_user_and_no_rights(
    of_pod: Json | None, of_container: Json | None, user: Json
) -> None:
    changes = {
        "spec.template.spec.securityContext": of_pod,
        "spec.template.spec.containers.0.securityContext": of_container,
    }
    assert pod(changes)["initContainers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        **user,
    }


def test_a_default_storage_class_stays_the_clusters_choice() -> None:
    claim = made({"spec.state.volumeClaimTemplate.storageClassName": ABSENT})["volumeClaimTemplates"][0]
    assert "storageClassName" not in claim["spec"]
    claim = made({"spec.state.volumeClaimTemplate.storageClassName": ""})["volumeClaimTemplates"][0]
    assert claim["spec"]["storageClassName"] == ""


WRITTEN = manifests.with_replicas(manifests.statefulset(a_streamapp(), HERE), 6)
"""As it would come back from the API server."""


@pytest.mark.parametrize(
    ("changes", "is_written"),
    {
        "nothing": ({}, True),
        "replicas": ({"spec.replicas": 9}, True),
        "a policy": ({"spec.scaleDown.timeout": "2h"}, True),
        "the image": ({"spec.template.spec.containers.0.image": "registry.example/wordcount:2"}, False),
        "a label": ({"spec.template.metadata.labels": {}}, False),
        "the mount path": ({"spec.state.mountPath": "/data"}, False),
        "the age of state": ({"spec.state.maxIdleTime": "10h"}, False),
        "the retention": ({"spec.state.retention.whenDeleted": "Delete"}, False),
    }.values(),
    ids=str,
)
def test_the_hash_tells_whether_the_template_is_written(changes: Json, is_written: bool) -> None:
    assert manifests.template_is_written(a_streamapp(changes), HERE, WRITTEN) is is_written


STORAGE = "spec.state.volumeClaimTemplate.resources.requests.storage"
CLASS = "spec.state.volumeClaimTemplate.storageClassName"


@pytest.mark.parametrize("changes", [{STORAGE: "40Gi"}, {CLASS: "slow"}, {CLASS: ABSENT}], ids=str)
def test_claim_templates_that_are_there_never_change(changes: Json) -> None:
    # the API server would refuse the write, and no pod restarts for what stands in no pod template
    app = a_streamapp(changes)
    again = manifests.statefulset(app, HERE, WRITTEN)
    assert again["spec"]["volumeClaimTemplates"] == WRITTEN["spec"]["volumeClaimTemplates"] == [VOLUME_CLAIM]
    assert manifests.template_is_written(app, HERE, WRITTEN)
    anew = manifests.statefulset(app, HERE)
    assert anew["spec"]["volumeClaimTemplates"] != [VOLUME_CLAIM]
    assert manifests.template_is_written(app, HERE, anew)
    assert manifests.template_is_written(app, HERE, WRITTEN)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({STORAGE: "40Gi"}, ""),
        ({CLASS: "slow"}, "fast, not slow"),
        ({CLASS: ABSENT}, "fast, not the default"),
    ],
    ids=str,
)
def test_another_storage_class_than_the_statefulsets_is_told(changes: Json, said: str) -> None:
    found = manifests.other_storage_class(a_streamapp(changes), WRITTEN)
    assert found.startswith(said)
    assert bool(found) is bool(said)


def test_the_same_size_in_other_words_is_no_other_template() -> None:
    stored = deepcopy(WRITTEN)
    stored["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] = "20480Mi"
    assert manifests.template_is_written(a_streamapp(), HERE, stored)


def test_the_template_is_made_again_only_for_another_spec_or_other_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, made = ["a"], Mock(wraps=manifests.statefulset)
    monkeypatch.setattr(manifests, "statefulset", made)
    here = Installation(name="blue", seed_image="seed:1", accepted=lambda _: tokens[-1])
    agent = {"spec.agent.enabled": True}
    first = manifests.statefulset(a_streamapp(agent), here)
    app = a_streamapp(agent)
    written = [manifests.template_is_written(app, here, first) for _ in range(3)]
    written.append(manifests.template_is_written(a_streamapp({**agent, "spec.state.mountPath": "/data"}), here, first))
    tokens.append("b")
    written.append(manifests.template_is_written(app, here, first))
    assert (written, made.call_count) == ([True, True, True, False, False], 4)


def test_a_mistake_that_compares_equal_to_what_was_meant_is_another_template() -> None:
    here = Installation(name="blue", seed_image="seed:1")
    wrong, meant = (a_streamapp({"spec.template.spec.hostNetwork": one}) for one in (1, True))
    first = manifests.statefulset(wrong, here)
    assert [manifests.template_is_written(one, here, first) for one in (wrong, meant)] == [True, False]


def test_an_installation_forgets_the_hash_of_the_oldest_streamapp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MOST_HASHES", 2)
    here = Installation(name="blue", seed_image="seed:1")
    for uid in ("1", "2", "3"):
        manifests.template_is_written(a_streamapp({"metadata.uid": uid}), here, WRITTEN)
    assert list(here.hashes) == ["2", "3"]


def test_a_newer_seeder_alone_restarts_nobody() -> None:
    newer = Installation(name="blue", seed_image="registry.example/seed:2", seed_pull_policy="Always")
    assert manifests.template_is_written(a_streamapp(), newer, WRITTEN)
    assert manifests.statefulset(a_streamapp(), newer) != manifests.statefulset(a_streamapp(), HERE)


@pytest.mark.parametrize("metadata", [{}, {"annotations": None}, {"annotations": {"a": "b"}}], ids=str)
def test_a_statefulset_without_a_hash_is_not_written(metadata: Json) -> None:
    assert not manifests.template_is_written(a_streamapp(), HERE, {**WRITTEN, "metadata": metadata})


@pytest.mark.parametrize(
    ("metadata", "ours"),
    {
        "ours": (METADATA, True),
        "also owned by another": ({**METADATA, "ownerReferences": [OWNER, {"uid": "x"}]}, True),
        "of an earlier StreamApp of this name": ({**METADATA, "ownerReferences": [{**OWNER, "uid": "x"}]}, False),
        "only owned, not controlled": ({**METADATA, "ownerReferences": [{**OWNER, "controller": False}]}, False),
        "nobody's": ({**METADATA, "ownerReferences": []}, False),
        "of another installation": ({**METADATA, "labels": {"streamapp.dev/operator": "green"}}, False),
        "without labels": ({"ownerReferences": [OWNER]}, False),
        "by hand": ({}, False),
    }.values(),
    ids=str,
)
def test_a_statefulset_is_ours_if_this_streamapp_controls_it_and_this_installation_made_it(
    metadata: Json, ours: bool
) -> None:
    assert manifests.is_ours(a_streamapp(), HERE, {"metadata": metadata}) is ours


def test_the_service_gives_names_to_all_pods_ready_or_not() -> None:
    assert manifests.service(a_streamapp(), HERE) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": METADATA,
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"streamapp.dev/app": "wordcount"},
        },
    }


@pytest.mark.parametrize(("allows", "number"), [(Budget.OPEN, 1), (Budget.CLOSED, 0)])
def test_the_budget_lets_one_pod_go_or_none(allows: Budget, number: int) -> None:
    assert manifests.disruption_budget(a_streamapp(), HERE, allows=allows) == {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": METADATA,
        "spec": {
            "maxUnavailable": number,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": {"streamapp.dev/app": "wordcount"}},
        },
    }


def test_a_budget_that_follows_coverage_can_leave_one_pod_out() -> None:
    made = manifests.disruption_budget(a_streamapp(), HERE, allows=Budget.OPEN_FOR_ONE, evictable=Ordinal(12), lease=7)
    assert made["metadata"]["annotations"] == {"streamapp.dev/lease": "7"}
    assert made["spec"] == {
        "maxUnavailable": 0,
        "unhealthyPodEvictionPolicy": "IfHealthyBudget",
        "selector": {
            "matchLabels": {"streamapp.dev/app": "wordcount"},
            "matchExpressions": [
                {"key": "statefulset.kubernetes.io/pod-name", "operator": "NotIn", "values": ["wordcount-12"]}
            ],
        },
    }


def test_a_claim_is_labelled_with_its_ordinal_and_its_process() -> None:
    process = seeded_process_id(UID, Ordinal(3))
    assert manifests.claim_patch(a_streamapp(), Ordinal(3), str(process)) == {
        "metadata": {
            "labels": {"streamapp.dev/app": "wordcount", "streamapp.dev/ordinal": "3"},
            "annotations": {"streamapp.dev/application-id": "wordcount", "streamapp.dev/process-id": str(process)},
        }
    }
