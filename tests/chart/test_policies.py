"""The chart's admission policies on a real API server: pods of StreamApps, and what the operator itself may write."""

import json
import time
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.chart.api_server import ApiServer, running
from tests.chart.rendering import render

pytestmark = pytest.mark.chart

Json = dict[str, Any]
OPERATOR = "system:serviceaccount:streamapp-system:streamapp-operator"
POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "CustomResourceDefinition")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Give an API server with the definition and the policies, which are in force."""
    with running(tmp_path_factory.mktemp("api")) as one:
        made = [each for each in render({}).objects if each["kind"] in POLICIES]
        one.apply(*(each for each in made if each["kind"] == "CustomResourceDefinition"))
        one.apply(*(each for each in made if each["kind"] != "CustomResourceDefinition"))
        until = time.monotonic() + 30
        wrong = streamapp({"hostNetwork": True})
        while "hostNetwork" not in one.creation_refusal(wrong) or not one.creation_refusal(
            a_set(ownerReferences=[]), user=OPERATOR
        ):
            assert time.monotonic() < until, "the policies are not in force"
            time.sleep(0.3)
        yield one


def streamapp(pod: Json | None = None, annotations: Json | None = None) -> Json:
    """Give a StreamApp whose pods have this in their specification; of a container, what is below `container`."""
    of_pod = deepcopy(pod or {})
    container = {"name": "app", "image": "app:1", **of_pod.pop("container", {})}
    template: Json = {"spec": {"containers": [container], **of_pod}}
    if annotations:
        template["metadata"] = {"annotations": annotations}
    return {
        "apiVersion": "streamapp.dev/v1alpha1",
        "kind": "StreamApp",
        "metadata": {"name": "counter"},
        "spec": {
            "applicationId": "counter",
            "kafka": {"bootstrapServers": "kafka:9092"},
            "template": template,
        },
    }


def secured(**context: Any) -> Json:
    return {"container": {"securityContext": context}}


def at_first(**context: Any) -> Json:
    return {"initContainers": [{"name": "first", "image": "first:1", "securityContext": context}]}


HOOK = {"preStop": {"httpGet": {"host": "169.254.169.254", "port": 80}}}

FORBIDDEN: dict[str, tuple[Json, str]] = {
    "hostPath": ({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}, "a volume of type hostPath"),
    "hostNetwork": ({"hostNetwork": True}, "hostNetwork, hostPID and hostIPC"),
    "hostPID": ({"hostPID": True}, "hostNetwork, hostPID and hostIPC"),
    "hostIPC": ({"hostIPC": True}, "hostNetwork, hostPID and hostIPC"),
    "hostPort": ({"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}, "hostPort is not allowed"),
    "a probe of another host": (
        {"container": {"readinessProbe": {"tcpSocket": {"host": "10.0.0.1", "port": 22}}}},
        "must not name a host",
    ),
    "a hook that asks another host": ({"container": {"lifecycle": HOOK}}, "must not name a host"),
    "privileged": (secured(privileged=True), "a privileged container"),
    "privileged at first": (at_first(privileged=True), "a privileged container"),
    "SYS_ADMIN": (secured(capabilities={"add": ["SYS_ADMIN"]}), "capabilities.add"),
    "NET_RAW at first": (at_first(capabilities={"add": ["CHOWN", "NET_RAW"]}), "capabilities.add"),
    "ALL": (secured(capabilities={"add": ["ALL"]}), "capabilities.add"),
    "hostProcess": ({"securityContext": {"windowsOptions": {"hostProcess": True}}}, "hostProcess"),
    "hostProcess of a container": (secured(windowsOptions={"hostProcess": True}), "hostProcess"),
    "AppArmor off": ({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}, "appArmorProfile"),
    "AppArmor off in a container": (secured(appArmorProfile={"type": "Unconfined"}), "appArmorProfile"),
    "an SELinux type": ({"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}, "seLinuxOptions"),
    "an SELinux user": (secured(seLinuxOptions={"user": "system_u"}), "seLinuxOptions"),
    "an SELinux role": (at_first(seLinuxOptions={"role": "system_r"}), "seLinuxOptions"),
    "procMount": (secured(procMount="Unmasked"), "procMount"),
    "seccomp off": ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, "seccompProfile"),
    "seccomp off in a container": (secured(seccompProfile={"type": "Unconfined"}), "seccompProfile"),
    "an unsafe sysctl": (
        {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
        "securityContext.sysctls",
    ),
}


@pytest.mark.parametrize(("pod", "words"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_a_template_beyond_baseline_is_refused_with_its_control(server: ApiServer, pod: Json, words: str) -> None:
    told = server.creation_refusal(streamapp(pod))
    assert words in told
    assert "chart value admission.templates.allow" in told


def test_an_apparmor_annotation_that_switches_it_off_is_refused(server: ApiServer) -> None:
    key = "container.apparmor.security.beta.kubernetes.io/app"
    assert "an AppArmor annotation" in server.creation_refusal(streamapp(annotations={key: "unconfined"}))
    assert server.creation_refusal(streamapp(annotations={key: "runtime/default", "other": "x"})) == ""


ALLOWED: dict[str, Json] = {
    "nothing of it": {},
    "what restricted asks for": {
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            "seLinuxOptions": {"type": "container_t", "level": "s0:c1"},
            "appArmorProfile": {"type": "Localhost", "localhostProfile": "x"},
            "sysctls": [{"name": "net.ipv4.tcp_keepalive_time", "value": "60"}],
        },
        **secured(allowPrivilegeEscalation=False, capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    },
    "probes of itself": {"container": {"livenessProbe": {"httpGet": {"path": "/", "port": 80}}}},
}


@pytest.mark.parametrize("pod", ALLOWED.values(), ids=ALLOWED.keys())
def test_what_baseline_allows_is_let_in(server: ApiServer, pod: Json) -> None:
    assert server.creation_refusal(streamapp(pod)) == ""


# The operator


def owner(name: str = "counter") -> Json:
    return {
        "apiVersion": "streamapp.dev/v1alpha1",
        "kind": "StreamApp",
        "name": name,
        "uid": "6f2a1f9e-1111-4222-8333-444455556666",
        "controller": True,
    }


def metadata(**changes: Any) -> Json:
    labels = {"streamapp.dev/app": "counter", "streamapp.dev/operator": "streamapp-operator"}
    return {"name": "counter", "namespace": "default", "labels": labels, "ownerReferences": [owner()], **changes}


def a_set(pod: Json | None = None, **changes: Any) -> Json:
    """Give the StatefulSet that the operator makes of a StreamApp."""
    template = streamapp(pod)["spec"]["template"]
    template["metadata"] = {"labels": {"streamapp.dev/app": "counter"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(**changes),
        "spec": {
            "serviceName": "counter",
            "selector": {"matchLabels": {"streamapp.dev/app": "counter"}},
            "template": template,
        },
    }


def a_service(spec: Json | None = None, **changes: Any) -> Json:
    ports = [{"port": 80}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(**changes),
        "spec": {"ports": ports, "clusterIP": "None", **(spec or {})},
    }


def test_the_operator_writes_what_belongs_to_a_streamapp(server: ApiServer) -> None:
    assert server.creation_refusal(a_set(), user=OPERATOR) == ""
    assert server.creation_refusal(a_service(), user=OPERATOR) == ""


NOT_ITS_OWN: dict[str, tuple[Json, str]] = {
    "without an owner": (a_set(ownerReferences=[]), "belong to a StreamApp of their name"),
    "of another owner": (a_set(ownerReferences=[owner("other")]), "belong to a StreamApp of their name"),
    "of another installation": (
        a_set(labels={"streamapp.dev/app": "counter", "streamapp.dev/operator": "second"}),
        "belong to a StreamApp of their name",
    ),
    "of another name": (a_set(name="other"), "belong to a StreamApp of their name"),
    "in the namespace of the control plane": (a_set(namespace="kube-system"), "serves no StreamApps in namespace"),
    "a way to the node": (a_set(secured(privileged=True)), "no pod more than Pod Security baseline allows"),
    "the node's files": (
        a_set({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}),
        "no pod more than Pod Security baseline allows",
    ),
    "a Service without an owner": (a_service(ownerReferences=[]), "belong to a StreamApp of their name"),
    "a way in from outside": (
        a_service({"clusterIP": "", "type": "NodePort"}),
        "the operator makes only Services within the cluster",
    ),
    "an address of its own": (
        a_service({"clusterIP": "", "externalIPs": ["203.0.113.1"]}),
        "the operator makes only Services within the cluster",
    ),
}


@pytest.mark.parametrize(("body", "words"), NOT_ITS_OWN.values(), ids=NOT_ITS_OWN.keys())
def test_the_operator_cannot_write_what_belongs_to_none(server: ApiServer, body: Json, words: str) -> None:
    """The user has every right here, as an operator whose account was bound to more would have."""
    assert words in server.creation_refusal(body, user=OPERATOR)
    if "Service" not in body["kind"]:
        assert server.creation_refusal(body) == ""


def test_the_operator_cannot_take_over_what_another_made(server: ApiServer) -> None:
    foreign = a_set(name="database", labels={}, ownerReferences=[])
    foreign["spec"]["selector"] = {"matchLabels": {"app": "database"}}
    foreign["spec"]["template"]["metadata"] = {"labels": {"app": "database"}}
    server.apply(foreign)
    labels = {"streamapp.dev/app": "database", "streamapp.dev/operator": "streamapp-operator"}
    taken = {**foreign, "metadata": metadata(name="database", labels=labels, ownerReferences=[owner("database")])}
    told = server.refusal("apply", taken, "--server-side", "--force-conflicts", user=OPERATOR)
    assert "statefulsets default/database belongs to no StreamApp of this installation" in told


def test_a_template_that_was_let_in_before_can_still_be_kept(server: ApiServer) -> None:
    labels = {"streamapp.dev/app": "kept", "streamapp.dev/operator": "streamapp-operator"}
    privileged = a_set(secured(privileged=True), name="kept", labels=labels, ownerReferences=[owner("kept")])
    server.apply(privileged)
    again = ("--server-side", "--force-conflicts")
    privileged["spec"]["template"]["spec"]["containers"][0]["image"] = "app:2"
    assert server.refusal("apply", privileged, *again, user=OPERATOR) == ""
    privileged["spec"]["template"]["spec"]["hostNetwork"] = True
    assert "no pod more than" in server.refusal("apply", privileged, *again, user=OPERATOR)


def a_claim(**changes: Any) -> Json:
    storage = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": storage, "storageClassName": "x"}
    metadata = {"name": "state-counter-0", "namespace": "default", "labels": {"team": "a"}, **changes}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def test_the_operator_labels_a_claim_and_changes_nothing_else_of_it(server: ApiServer) -> None:
    server.apply(a_claim())
    apply = ("--server-side", "--force-conflicts", "--field-manager=streamapp-operator")
    labelled = a_claim(labels={"streamapp.dev/app": "counter", "streamapp.dev/ordinal": "0"})
    labelled["metadata"]["annotations"] = {"streamapp.dev/process-id": "x"}
    del labelled["spec"]
    assert server.refusal("apply", labelled, *apply, user=OPERATOR) == ""
    other = a_claim(labels={"team": "b"})
    assert "only its own labels" in server.refusal("apply", other, *apply, user=OPERATOR)
    noted = a_claim(labels={}, annotations={"pv.kubernetes.io/bind-completed": "no"})
    del noted["spec"]
    assert "only its own annotations" in server.refusal("apply", noted, *apply, user=OPERATOR)
    owned = a_claim(labels={}, ownerReferences=[owner("nobody")])
    del owned["spec"]
    assert "neither owners nor finalizers" in server.refusal("apply", owned, *apply, user=OPERATOR)
    unprotected = ("persistentvolumeclaim/state-counter-0", "--type=merge", '--patch={"metadata":{"finalizers":null}}')
    assert "neither owners nor finalizers" in server.refusal("patch", None, *unprotected, user=OPERATOR)
    patch = '--patch={"spec":{"volumeName":"pv-of-another"}}'
    claim = ("persistentvolumeclaim/state-counter-0", "--type=merge", patch)
    assert "changes nothing in the specification" in server.refusal("patch", None, *claim, user=OPERATOR)


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        pytest.param({}, "", id="more storage alone"),
        pytest.param({"volumeAttributesClassName": "fast"}, "changes nothing", id="and attributes"),
        pytest.param({"storageClassName": "y"}, "spec is immutable", id="and a class: Kubernetes itself refuses"),
        pytest.param({"resources": {"requests": {"storage": "1Mi"}}}, "", id="less storage"),
    ],
)
def test_the_operator_has_a_claim_ask_for_more_storage_and_changes_nothing_beside(
    server: ApiServer, more: Json, refusal: str
) -> None:
    expandable = {"metadata": {"name": "x"}, "provisioner": "example.org/none", "allowVolumeExpansion": True}
    server.apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **expandable})
    bound = a_claim()
    bound["metadata"]["name"] = "state-counter-1"
    bound["spec"]["volumeName"] = "pv-of-counter-1"
    server.apply(bound)
    claim = ("persistentvolumeclaim/state-counter-1", "--type=merge")
    status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    done = server.run("patch", *claim, "--subresource=status", f"--patch={json.dumps(status)}")
    assert done.returncode == 0, done.stderr
    patch = {"spec": {"resources": {"requests": {"storage": "2Gi"}}, **more}}
    said = server.refusal("patch", None, *claim, f"--patch={json.dumps(patch)}", user=OPERATOR)
    assert refusal in said
    # of a smaller claim it is Kubernetes that may refuse first
    assert bool(said) is (bool(refusal) or "resources" in more)


def a_pod(name: str, labels: Json, owners: list[Json]) -> Json:
    pod = {"name": name, "namespace": "default", "labels": labels, "ownerReferences": owners}
    spec = {"containers": [{"name": "app", "image": "app:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": spec}


def test_the_operator_deletes_only_pods_of_streamapps(server: ApiServer) -> None:
    of_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "counter",
        "uid": "6f2a1f9e-1111-4222-8333-444455556667",
        "controller": True,
    }
    server.apply(
        a_pod("counter-0", {"streamapp.dev/app": "counter"}, [of_set]),
        a_pod("labelled", {"streamapp.dev/app": "counter"}, []),
        a_pod("owned", {}, [of_set]),
    )
    assert server.refusal("delete", None, "pod/counter-0", user=OPERATOR) == ""
    for name in ("labelled", "owned"):
        told = server.refusal("delete", None, f"pod/{name}", user=OPERATOR)
        assert f"pod default/{name} belongs to no StreamApp" in told
