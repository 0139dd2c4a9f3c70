"""StreamApps for tests: one sound object as a user would write it, and everything a user could get wrong.

The tables of wrong objects are used twice: the operator must tell each in the same words as a real API server, which
refuses it by the committed CRD.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from streamapp.api.names import API_VERSION, KIND
from streamapp.api.validation.parse import StreamApp, parse
from tests.mistakes import WRONG_AGENTS, Wrong
from tests.support.sentinel import Sentinel

Json = dict[str, Any]

UID = "5c1f0a52-7d0e-4f0e-9d57-0a1b2c3d4e5f"

SPEC: Json = {
    "replicas": 3,
    "applicationId": "wordcount",
    "kafka": {"bootstrapServers": "kafka.kafka.svc:9092"},
    "template": {
        "metadata": {"labels": {"team": "words"}},
        "spec": {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "app",
                    "image": "registry.example/wordcount:1",
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                },
                {
                    "name": "sidecar",
                    "image": "registry.example/sidecar:1",
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                },
            ],
        },
    },
    "container": "app",
    "state": {
        "mountPath": "/var/lib/streams",
        "volumeClaimTemplate": {"storageClassName": "fast", "resources": {"requests": {"storage": "20Gi"}}},
    },
}


ABSENT: Any = Sentinel("ABSENT")
"""In a change: the field is taken away."""


def changed(whole: Mapping[str, Any], changes: Mapping[str, Any]) -> Json:
    """A copy with fields set by their path: `{"spec.scaleDown.timeout": "2h"}`; lists by index: `containers.0.name`."""
    copy = deepcopy(dict(whole))
    for path, value in changes.items():
        *way, last = path.split(".")
        place: Any = copy
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        if value is ABSENT:
            place.pop(last)
        elif isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    return copy


def written(changes: Mapping[str, Any] | None = None, *, name: str = "wordcount") -> Json:
    """The object as in a file."""
    whole = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": SPEC}
    return changed(whole, changes or {})


def stored(changes: Mapping[str, Any] | None = None, *, name: str = "wordcount") -> Json:
    """The object as the API server gives it, but for the defaults."""
    metadata = {
        "metadata.namespace": "demo",
        "metadata.uid": UID,
        "metadata.generation": 4,
        "metadata.creationTimestamp": "2026-11-20T12:00:00Z",
    }
    return changed(written(name=name), metadata | dict(changes or {}))


def a_streamapp(changes: Mapping[str, Any] | None = None, *, name: str = "wordcount") -> StreamApp:
    """A sound one, read."""
    found = parse(stored(changes, name=name))
    assert isinstance(found, StreamApp), found.sentence
    return found


_NAME = (
    "metadata.name must have at most 52 characters, start with a letter and consist of lower-case letters, digits and "
    "'-': pods, a Service and labels are named after it"
)
_FOLDER = "must be an absolute path without ':', '.', '..' or a trailing '/'"
_QUANTITY = "must be a positive amount of storage, such as 20Gi"
_APPLICATION_ID = "must consist of letters, digits, '.', '_' and '-', and not of dots alone"
_BROKERS = "must be a comma-separated list of host:port without spaces"
_TIMEOUT = "must be a duration from 1m to 720h, written like 30s, 20h or 1h30m"

WRONG: Mapping[str, Wrong] = {
    **WRONG_AGENTS,
    "a name of 53 characters": Wrong(_NAME, name="w" * 53),
    "a name that no Service may have": Wrong(_NAME, name="1-wordcount"),
    "a name with a dot": Wrong(_NAME, name="word.count"),
    "no replicas without allowZero": Wrong(
        "spec.replicas must be at least 1 unless scaleDown.allowZero is true", {"spec.replicas": 0}
    ),
    "fewer than no replicas": Wrong(
        "spec.replicas must be at least 0, not -1",
        {"spec.replicas": -1},
        server_says="spec.replicas in body should be greater than or equal to 0",
    ),
    "too many replicas": Wrong(
        "spec.replicas must be at most 1000, not 1001",
        {"spec.replicas": 1001},
        server_says="spec.replicas in body should be less than or equal to 1000",
    ),
    "replicas in words": Wrong(
        "spec.replicas must be a whole number, not 'three'",
        {"spec.replicas": "three"},
        server_says='spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer',
    ),
    "no application ID": Wrong(
        "spec.applicationId is required",
        {"spec.applicationId": ABSENT},
        server_says="spec.applicationId: Required value",
    ),
    "an application ID with a space": Wrong(
        f"spec.applicationId {_APPLICATION_ID}, not 'word count'", {"spec.applicationId": "word count"}
    ),
    "an application ID that leads out of its folder": Wrong(
        f"spec.applicationId {_APPLICATION_ID}, not '..'", {"spec.applicationId": ".."}
    ),
    "an application ID that is too long for topics": Wrong(
        "spec.applicationId must have at most 200 characters",
        {"spec.applicationId": "a" * 201},
        server_says="spec.applicationId: Too long: may not be more than 200 bytes",
    ),
    "no Kafka": Wrong("spec.kafka is required", {"spec.kafka": ABSENT}, server_says="spec.kafka: Required value"),
    "a broker without its port": Wrong(
        f"spec.kafka.bootstrapServers {_BROKERS}, not 'kafka'", {"spec.kafka.bootstrapServers": "kafka"}
    ),
    "brokers with a space": Wrong(
        f"spec.kafka.bootstrapServers {_BROKERS}, not 'a:9092, b:9092'",
        {"spec.kafka.bootstrapServers": "a:9092, b:9092"},
    ),
    "a Secret that no Secret may be called": Wrong(
        "spec.kafka.configSecretRefs[0].name must be an object name: lower-case letters, digits, '-' and '.', "
        "not 'My_Secret'",
        {"spec.kafka.configSecretRefs": [{"name": "My_Secret"}]},
    ),
    "no template": Wrong(
        "spec.template is required", {"spec.template": ABSENT}, server_says="spec.template: Required value"
    ),
    "no containers": Wrong(
        "spec.template must have 1 to 32 containers",
        {"spec.template.spec.containers": []},
        server_says="spec.template.spec.containers in body should have at least 1 items",
    ),
    "a container without a name": Wrong(
        "spec.template must have a name for each container, and no name twice",
        {"spec.template.spec.containers.1.name": ABSENT},
        server_says="spec.template.spec.containers[1].name: Required value",
    ),
    "two containers of one name": Wrong(
        "spec.template must have a name for each container, and no name twice",
        {"spec.template.spec.containers.1.name": "app"},
        server_says='spec.template.spec.containers[1]: Duplicate value: {"name":"app"}',
    ),
    "a container that is not there": Wrong(
        "spec.container must be the name of a container in template.spec.containers", {"spec.container": "main"}
    ),
    "several containers and none named": Wrong(
        "spec.container must name the container that runs the application: the template has several",
        {"spec.container": ABSENT},
    ),
    "a relative mount path": Wrong(
        f"spec.state.mountPath {_FOLDER}, not 'streams'", {"spec.state.mountPath": "streams"}
    ),
    "a way out of the volume": Wrong(
        f"spec.state.stateDir {_FOLDER}, not '/var/lib/streams/../other'",
        {"spec.state.stateDir": "/var/lib/streams/../other"},
    ),
    "a state directory beside the volume": Wrong(
        "spec.state.stateDir must be mountPath or a folder below it, or the state is not on the volume",
        {"spec.state.stateDir": "/var/lib/streams-2"},
    ),
    "no storage": Wrong(
        f"spec.state.volumeClaimTemplate.resources.requests.storage {_QUANTITY}, not '0Gi'",
        {"spec.state.volumeClaimTemplate.resources.requests.storage": "0Gi"},
    ),
    "storage in words": Wrong(
        f"spec.state.volumeClaimTemplate.resources.requests.storage {_QUANTITY}, not 'big'",
        {"spec.state.volumeClaimTemplate.resources.requests.storage": "big"},
    ),
    "a volume for many": Wrong(
        "spec.state.volumeClaimTemplate.accessModes[0] must be 'ReadWriteOnce' or 'ReadWriteOncePod', "
        "not 'ReadWriteMany'",
        {"spec.state.volumeClaimTemplate.accessModes": ["ReadWriteMany"]},
        server_says='Unsupported value: "ReadWriteMany": supported values: "ReadWriteOnce", "ReadWriteOncePod"',
    ),
    "a claim that no volume may be called": Wrong(
        "spec.state.claimName must be a volume name: lower-case letters, digits and '-', not 'State'",
        {"spec.state.claimName": "State"},
    ),
    "a negative recovery lag": Wrong(
        "spec.learners.acceptableRecoveryLag must be at least 0, not -1",
        {"spec.learners.acceptableRecoveryLag": -1},
        server_says="spec.learners.acceptableRecoveryLag in body should be greater than or equal to 0",
    ),
    "an unknown policy": Wrong(
        "spec.scaleDown.policy must be 'Hold' or 'Immediate', not 'Force'",
        {"spec.scaleDown.policy": "Force"},
        server_says='spec.scaleDown.policy: Unsupported value: "Force": supported values: "Hold", "Immediate"',
    ),
    "Immediate without a reason": Wrong(
        "spec.scaleDown.reason must give a reason: policy Immediate removes pods without caught-up copies",
        {"spec.scaleDown.policy": "Immediate"},
    ),
    "Immediate for no more than a space": Wrong(
        "spec.scaleDown.reason must give a reason: policy Immediate removes pods without caught-up copies",
        {"spec.scaleDown.policy": "Immediate", "spec.scaleDown.reason": " "},
    ),
    "Proceed without a reason": Wrong(
        "spec.scaleDown.reason must give a reason: onTimeout Proceed removes pods without caught-up copies",
        {"spec.scaleDown.onTimeout": "Proceed"},
    ),
    "a duration in words": Wrong(
        f"spec.scaleDown.timeout {_TIMEOUT}, not '1 hour'", {"spec.scaleDown.timeout": "1 hour"}
    ),
    "a duration of nothing": Wrong(f"spec.scaleDown.timeout {_TIMEOUT}, not ''", {"spec.scaleDown.timeout": ""}),
    "a duration that is too short": Wrong(
        f"spec.scaleDown.timeout {_TIMEOUT}, not '30s'", {"spec.scaleDown.timeout": "30s"}
    ),
    "a duration that is too long": Wrong(
        "spec.scaleDown.stabilizationWindow must be a duration from 0s to 24h, written like 30s, 20h or 1h30m, "
        "not '25h'",
        {"spec.scaleDown.stabilizationWindow": "25h"},
    ),
    "a number as a duration": Wrong(
        f"spec.scaleDown.timeout {_TIMEOUT}, not 3600",
        {"spec.scaleDown.timeout": 3600},
        server_says='"integer": spec.scaleDown.timeout in body must be of type string',
    ),
    "the volume twice": Wrong(
        "spec.template.spec.volumes must not have one called state, as spec.state has",
        {"spec.template.spec.volumes": [{"name": "state", "emptyDir": {}}]},
        server_says="",
    ),
    "another volume in its place": Wrong(
        "spec.template.spec.containers[app].volumeMounts must not mount tmp at /var/lib/streams, where the volume of "
        "spec.state goes",
        {
            "spec.template.spec.volumes": [{"name": "tmp", "emptyDir": {}}],
            "spec.template.spec.containers.0.volumeMounts": [{"name": "tmp", "mountPath": "/var/lib/streams/"}],
        },
        server_says="",
    ),
    "the volume in another place": Wrong(
        "spec.template.spec.containers[app].volumeMounts must mount state at /var/lib/streams, whole and writable, or "
        "not at all",
        {"spec.template.spec.containers.0.volumeMounts": [{"name": "state", "mountPath": "/data"}]},
        server_says="",
    ),
    "the volume read-only": Wrong(
        "spec.template.spec.containers[app].volumeMounts must mount state at /var/lib/streams, whole and writable, or "
        "not at all",
        {
            "spec.template.spec.containers.0.volumeMounts": [
                {"name": "state", "mountPath": "/var/lib/streams", "readOnly": True}
            ]
        },
        server_says="",
    ),
    "another's label": Wrong(
        "spec.template.metadata.labels must not set streamapp.dev/app, which is the StreamApp's name",
        {"spec.template.metadata.labels": {"streamapp.dev/app": "payments"}},
        server_says="",
    ),
    "the operator's init container": Wrong(
        "spec.template.spec.initContainers must not have one called streamapp-seed, which the operator adds",
        {"spec.template.spec.initContainers": [{"name": "streamapp-seed", "image": "mine"}]},
        server_says="",
    ),
    "the first init container": Wrong(
        "spec.template.spec.initContainers must not have one called streamapp-seed-first, which the operator adds",
        {"spec.template.spec.initContainers": [{"name": "streamapp-seed-first", "image": "mine"}]},
        server_says="",
    ),
    "variables that are none": Wrong(
        "spec.template must have a list as env",
        {"spec.template.spec.containers.0.env": {"A": "b"}},
        server_says="",
    ),
    "labels that are none": Wrong(
        "spec.template must have an object as labels", {"spec.template.metadata.labels": "team=words"}, server_says=""
    ),
    "volumes that are none": Wrong(
        "spec.template must have a list as volumes", {"spec.template.spec.volumes": {"name": "tmp"}}, server_says=""
    ),
}

_FIXED = "cannot be changed: the volume claim templates of a StatefulSet are immutable"

FORBIDDEN_CHANGES: Mapping[str, Wrong] = {
    "another application ID": Wrong(
        "spec.applicationId cannot be changed: it names the consumer group, the internal topics and the state "
        "directories",
        {"spec.applicationId": "wordcount-2"},
    ),
    "state taken away": Wrong(
        "spec.state cannot be added or removed: the volume claim templates of a StatefulSet are immutable; create "
        "another StreamApp",
        {"spec.state": ABSENT},
    ),
    "another claim name": Wrong(f"spec.state.claimName {_FIXED}", {"spec.state.claimName": "data"}),
    "another access mode": Wrong(
        f"spec.state.volumeClaimTemplate.accessModes {_FIXED}",
        {"spec.state.volumeClaimTemplate.accessModes": ["ReadWriteOncePod"]},
    ),
}
"""From the sound object; only the API server sees both."""

ALLOWED_CHANGES: Mapping[str, Json] = {
    "less storage": {"spec.state.volumeClaimTemplate.resources.requests.storage": "10Gi"},
    "more storage": {"spec.state.volumeClaimTemplate.resources.requests.storage": "30Gi"},
    "another storage class": {"spec.state.volumeClaimTemplate.storageClassName": "slow"},
    "the default storage class": {"spec.state.volumeClaimTemplate.storageClassName": ABSENT},
    "the same storage in other words": {"spec.state.volumeClaimTemplate.resources.requests.storage": "20480Mi"},
    "other replicas": {"spec.replicas": 5},
    "no replicas where that is allowed": {"spec.replicas": 0, "spec.scaleDown.allowZero": True},
    "another image": {"spec.template.spec.containers.0.image": "registry.example/wordcount:2"},
    "another mount path": {"spec.state.mountPath": "/data"},
    "another retention": {"spec.state.retention.whenDeleted": "Delete"},
    "policies with a reason": {
        "spec.scaleDown.policy": "Immediate",
        "spec.scaleDown.onTimeout": "Proceed",
        "spec.scaleDown.reason": "the state is a cache",
    },
    "the agent with an option that it is added to": {
        "spec.agent": {"enabled": True, "defaults": []},
        "spec.learners.source": "OnDemand",
        "spec.learners.rebalance": "Eager",
        "spec.template.spec.containers.0.env": [{"name": "JDK_JAVA_OPTIONS", "value": ""}],
        "spec.template.spec.containers.0.envFrom": [{"configMapRef": {"name": "jvm"}}],
    },
    "floors of copies, zones and memory": {
        "spec.agent": {"enabled": True},
        "spec.learners.memoryPerTask": "64Mi",
        "spec.scaleDown.minCopies": 2,
        "spec.scaleDown.minZones": 2,
    },
    "every duration": {
        "spec.scaleDown.stabilizationWindow": "0s",
        "spec.scaleDown.timeout": "1h30m",
        "spec.state.maxIdleTime": "8760h",
    },
}
