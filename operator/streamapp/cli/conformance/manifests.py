"""The objects of a run: the StreamApp of the counter, and the pods that make topics, write, measure and clean. Pure.

Every pod runs the image of the user, meets the restricted Pod Security Standard, and has no token.
"""

from dataclasses import dataclass
from typing import Any

from streamapp.api.names import API_VERSION, GROUP, KIND

RUN_LABEL = f"{GROUP}/conformance"
"""On everything that a run makes: the name of the run."""
REPLICAS = 2
KEYS = 20_000
RATE = 100
"""Records a second."""
PARTITIONS = 6
SESSION_SECONDS = 120
"""The session timeout of the application. It is long, so that an eviction can be told from a session that ended."""
STABILIZATION_SECONDS = 10
_CLIENT_FOLDER = "/etc/kafka-client"
_MAIN = "dev.streamapp.examples.counter.Load"
_CLIENT_PROPERTIES = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.endpoint.identification.algorithm",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.type",
    "ssl.key.password",
    "ssl.truststore.certificates",
    "ssl.truststore.type",
)
"""What the application takes of the Secret; the load takes every key."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What the user gives, and the name of the run."""

    name: str
    namespace: str
    image: str
    bootstrap_servers: str
    secret: str = ""
    """With one key for each client property; empty: no encryption and no authentication."""
    storage_class: str = ""
    """Empty: the default of the cluster."""
    replication_factor: int = -1
    """-1: the default of the brokers."""

    @property
    def input_topic(self) -> str:
        """What the load writes."""
        return f"{self.name}-input"

    @property
    def output_topic(self) -> str:
        """What the application writes."""
        return f"{self.name}-output"

    @property
    def topics(self) -> str:
        """What a user must delete by hand if the run cannot."""
        return f"{self.input_topic}, {self.output_topic} and {self.name}-counts-changelog"

    def pod(self, part: str) -> str:
        """The name of a pod of the run."""
        return f"{self.name}-{part}"

    @property
    def environment(self) -> dict[str, str]:
        """What the application and its load must agree on."""
        return {
            "BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "APPLICATION_ID": self.name,
            "INPUT_TOPIC": self.input_topic,
            "OUTPUT_TOPIC": self.output_topic,
        }


def streamapp(setup: Setup) -> Json:
    """The counter with two pods and a standby copy of each task."""
    claim: Json = {"resources": {"requests": {"storage": "1Gi"}}}
    claim |= {"storageClassName": setup.storage_class} if setup.storage_class else {}
    kafka: Json = {"bootstrapServers": setup.bootstrap_servers}
    kafka |= {"configSecretRefs": [{"name": setup.secret}]} if setup.secret else {}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"namespace": setup.namespace, "name": setup.name, "labels": {RUN_LABEL: setup.name}},
        "spec": {
            "replicas": REPLICAS,
            "applicationId": setup.name,
            "kafka": kafka,
            "state": {"mountPath": "/var/lib/streams", "volumeClaimTemplate": claim},
            "scaleDown": {"stabilizationWindow": f"{STABILIZATION_SECONDS}s"},
            "template": {
                "metadata": {"labels": {RUN_LABEL: setup.name}},
                "spec": {**_pod_spec([_application(setup)]), "terminationGracePeriodSeconds": 60},
            },
        },
    }


def _application(setup: Setup) -> Json:
    settings = {
        **setup.environment,
        "CLOSE_TIMEOUT": "50s",
        "STREAMS_NUM_STANDBY_REPLICAS": "1",
        "STREAMS_HEARTBEAT_INTERVAL_MS": "500",
        "STREAMS_MAIN_CONSUMER_SESSION_TIMEOUT_MS": str(SESSION_SECONDS * 1000),
        "JDK_JAVA_OPTIONS": "-Xmx192m -XX:+UseSerialGC",
    }
    container = _container("counter", setup, settings, "400Mi", "700Mi")
    properties = _CLIENT_PROPERTIES if setup.secret else ()
    container["env"] += [_of_secret(setup.secret, one) for one in properties]
    return container


def _of_secret(secret: str, key: str) -> Json:
    variable = f"STREAMS_{key.upper().replace('.', '_')}"
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": True}}}


def preload_pod(setup: Setup) -> Json:
    """Makes the topics, and writes every key once."""
    factor = f"--replication-factor={setup.replication_factor}"
    topics = _load("topics", setup, "topics", f"--partitions={PARTITIONS}", factor)
    preload = _load("preload", setup, "preload", f"--records={KEYS}", f"--keys={KEYS}")
    return _pod(setup, "preload", [preload], [topics], restart="Never")


def load_pod(setup: Setup) -> Json:
    """Writes evenly paced records."""
    steady = _load("load", setup, "steady", f"--rate={RATE}", f"--keys={KEYS}")
    return _pod(setup, "load", [steady], restart="Always")


def meter_pod(setup: Setup) -> Json:
    """Measures how long inputs wait."""
    return _pod(setup, "meter", [_load("waits", setup, "waits")], restart="Always")


def remove_pod(setup: Setup) -> Json:
    """Deletes the topics and the group of the run."""
    return _pod(setup, "remove", [_load("remove", setup, "remove")], restart="Never")


def _load(name: str, setup: Setup, *arguments: str) -> Json:
    settings = {**setup.environment, "JDK_JAVA_OPTIONS": "-Xmx128m -XX:+UseSerialGC"}
    container = _container(name, setup, settings, "200Mi", "400Mi")
    config = ["--command-config", _CLIENT_FOLDER] if setup.secret else []
    container |= {"command": ["java", "-cp", "counter.jar:lib/*", _MAIN], "args": [*arguments, *config]}
    if setup.secret:
        container["volumeMounts"].append({"name": "client", "mountPath": _CLIENT_FOLDER, "readOnly": True})
    return container


def _container(name: str, setup: Setup, settings: dict[str, str], least: str, most: str) -> Json:
    return {
        "name": name,
        "image": setup.image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": variable, "value": value} for variable, value in settings.items()],
        # The report shows the last words of a container that fails.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "20m", "memory": least}, "limits": {"memory": most}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 (in the container)
    }


def _pod_spec(containers: list[Json]) -> Json:
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "fsGroup": 10001,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": containers,
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
    }


def _pod(setup: Setup, part: str, containers: list[Json], first: list[Json] | None = None, *, restart: str) -> Json:
    spec = _pod_spec(containers) | {"restartPolicy": restart, "terminationGracePeriodSeconds": 5}
    spec |= {"initContainers": first} if first else {}
    if setup.secret:
        spec["volumes"].append({"name": "client", "secret": {"secretName": setup.secret, "defaultMode": 0o440}})
    labels = {RUN_LABEL: setup.name}
    return {"metadata": {"namespace": setup.namespace, "name": setup.pod(part), "labels": labels}, "spec": spec}
