"""The demo application in a cluster: deployed from `examples/counter/kubernetes` under a name of its own each time.

A fresh application id and fresh topics per deployment mean that no run reads what an earlier one left, and none has
to wait until the broker forgets the members of the last.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.ownership import LABEL, MARK, require_own
from lab.errors import LabError
from lab.settings import EXAMPLES

NAMESPACE = "demo"
BOOTSTRAP = "kafka.kafka.svc:9092"
"""The lab's broker, as pods reach it."""
MANIFESTS = EXAMPLES / "counter" / "kubernetes"
WORKLOAD = "statefulset/counter"
SELECTOR = "app.kubernetes.io/name=counter"
_LOAD = "deployment/load"
_TIMEOUT_SECONDS = 20
_DEFAULT_SHAPE = "counter"
_FRESH_TOPIC = re.compile(r"counter-\d{4}-\d{6}[a-z]*-")
"""How the topics of a `fresh_name` begin: its input and output, and what Kafka Streams makes for its stores."""


@dataclass(frozen=True)
class DemoApplication:
    """One deployment of the counter: its names in Kafka and its settings."""

    application_id: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment of the application's container, over that of the manifest."""
    records: int = 1_000_000
    """Preloaded keys."""
    rate: int = 500
    """Records a second of the steady load."""
    namespace: str = NAMESPACE
    """Where it runs, with its load."""
    cpu_request: str = ""
    """What each of its pods, its load included, asks for, so that many fit on one node; empty: as in the manifest."""
    quiet: tuple[int, ...] = ()
    """Partitions of the input that get no record, neither preloaded nor by the steady load."""
    bootstrap: str = BOOTSTRAP
    """Where its pods, the load and the operator reach its brokers."""
    copies: int = 1
    """Replication factor of its input and its output; its internal topics have the brokers' default."""

    @property
    def input_topic(self) -> str:
        """What the load writes and the application reads."""
        return f"{self.application_id}-input"

    @property
    def output_topic(self) -> str:
        """What the application writes."""
        return f"{self.application_id}-output"

    @property
    def table_topic(self) -> str:
        """What the shape `table` reads its table from, and restores it from."""
        return f"{self.application_id}-table"

    @property
    def changelog_topic(self) -> str:
        """What Kafka Streams makes for the counts, and restores them from."""
        return f"{self.application_id}-counts-changelog"

    @property
    def shape(self) -> str:
        """What its tasks look like: `counter`, `echo`, `stores` or `table`."""
        return self.settings.get("TOPOLOGY", _DEFAULT_SHAPE)

    @property
    def is_inferable(self) -> bool:
        """Whether the operator can tell its tasks without being given the text of its topology."""
        return self.shape == _DEFAULT_SHAPE

    @property
    def names(self) -> Mapping[str, str]:
        """The environment that the application and its load must agree on."""
        names = {
            "APPLICATION_ID": self.application_id,
            "INPUT_TOPIC": self.input_topic,
            "OUTPUT_TOPIC": self.output_topic,
            "BOOTSTRAP_SERVERS": self.bootstrap,
        }
        return names if self.is_inferable else names | {"TOPOLOGY": self.shape, "TABLE_TOPIC": self.table_topic}

    @property
    def environment(self) -> Mapping[str, str]:
        """All that is laid over the environment of the manifest."""
        return {**self.names, **self.settings}

    @property
    def exactly_once(self) -> bool:
        """Whether the application promises exactly-once."""
        return self.settings.get("EXACTLY_ONCE", "false") == "true"


def fresh_name() -> str:
    """Give an application id that no earlier run used."""
    return time.strftime("counter-%m%d-%H%M%S", time.gmtime())


def remove(kubectl: Kubectl, bootstrap: str, *namespaces: str) -> None:
    """Delete earlier deployments with their volumes, and all topics; LabError if a namespace is not the lab's."""
    wanted = namespaces or (NAMESPACE,)
    require_own(kubectl, *wanted)
    delete_namespaces(kubectl, *wanted)
    remove_topics(bootstrap)


def delete_namespaces(kubectl: Kubectl, *namespaces: str) -> None:
    """Delete namespaces of the lab, and return when no pod is left in them; the rest follows within half a minute.

    Nobody measures these pods any more, so they have one second to end. The controller of namespaces would look again
    only after half of the longest grace period: `begin_preload` waits for it where a name is used again.
    """
    kubectl.run("delete", "namespace", *namespaces, "--ignore-not-found", "--wait=false")
    for namespace in namespaces:
        kubectl.run("delete", "pods", "--all", "--namespace", namespace, "--grace-period=1", "--wait=true")


def remove_topics(bootstrap: str) -> None:
    """Delete the topics of every name that `fresh_name` ever gave, changelogs included, and no others."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        left = [name for name in admin.list_topics(timeout=_TIMEOUT_SECONDS).topics if _FRESH_TOPIC.match(name)]
        for deleted in (admin.delete_topics(left) if left else {}).values():
            deleted.result(_TIMEOUT_SECONDS)
    except KafkaException as error:
        raise LabError(
            "topics of earlier runs: cannot be deleted", str(error), "look at `kubectl logs -n kafka kafka-0`"
        ) from error


def preload(kubectl: Kubectl, application: DemoApplication) -> None:
    """Make the topics and write every key once; returns when all are written."""
    begin_preload(kubectl, application)
    finish_preload(kubectl, application)


def begin_preload(kubectl: Kubectl, application: DemoApplication) -> None:
    """Start the job that makes the topics and writes every key once."""
    require_own(kubectl, application.namespace)
    namespace = ("get", "namespace", application.namespace, "--ignore-not-found")
    ending = (*namespace, "--output=jsonpath={.metadata.deletionTimestamp}")
    wait_until("the former namespace is gone", lambda: not kubectl.run(*ending).strip(), 180)
    apply(kubectl, application, "namespace.yaml")
    apply(kubectl, application, "preload.yaml")


def finish_preload(kubectl: Kubectl, application: DemoApplication) -> None:
    """Wait until it has written them all."""
    wait_until("preload", lambda: _job_done(kubectl, application.namespace), 300, interval_seconds=1)


def start(kubectl: Kubectl, application: DemoApplication, replicas: int) -> None:
    """Deploy the application with so many pods and wait until they run."""
    apply(kubectl, application, "statefulset.yaml", replicas=replicas)
    kubectl.wait_for_rollout(application.namespace, WORKLOAD)


def start_load(kubectl: Kubectl, application: DemoApplication) -> None:
    """Start the steady load and wait until its pod runs."""
    apply(kubectl, application, "load.yaml")
    kubectl.wait_for_rollout(application.namespace, _LOAD)


def stop_load(kubectl: Kubectl, application: DemoApplication) -> None:
    """End the steady load and wait until its last record is written."""
    kubectl.run("scale", "--namespace", application.namespace, _LOAD, "--replicas=0")
    wait_until("load ended", lambda: not pods(kubectl, application, "app.kubernetes.io/name=load"), 60)


def scale(kubectl: Kubectl, application: DemoApplication, replicas: int) -> None:
    """Write the scale subresource of the StatefulSet, which is what a HorizontalPodAutoscaler does."""
    kubectl.run("scale", "--namespace", application.namespace, WORKLOAD, f"--replicas={replicas}")


def pods(kubectl: Kubectl, application: DemoApplication, selector: str = SELECTOR) -> list[dict[str, Any]]:
    """Give the pods of the application, or of another selector, as the API server has them."""
    found: list[dict[str, Any]] = kubectl.json(
        *("get", "pods", "--namespace", application.namespace, "--selector", selector)
    )["items"]
    return found


def _job_done(kubectl: Kubectl, namespace: str) -> bool:
    status = kubectl.json("get", "job", "preload", "--namespace", namespace)["status"]
    if any(c["type"] == "Failed" and c["status"] == "True" for c in status.get("conditions", [])):
        log = kubectl.run("logs", "--namespace", namespace, "job/preload", "--all-containers", "--tail=20")
        raise PreloadFailedError("preload: failed", log.strip(), f"read `kubectl logs -n {namespace} job/preload`")
    return bool(status.get("succeeded"))


class PreloadFailedError(LabError):
    """The preload will not finish, so waiting for it is of no use."""


def apply(kubectl: Kubectl, application: DemoApplication, file: str, replicas: int | None = None) -> None:
    """Apply a manifest of the example under the application's names, in its namespace."""
    documents = [document for document in yaml.safe_load_all((MANIFESTS / file).read_text()) if document]
    for document in documents:
        adapt(document, application, replicas)
    kubectl.apply(yaml.safe_dump_all(documents))


def adapt(document: dict[str, Any], application: DemoApplication, replicas: int | None) -> None:
    """Give a manifest the deployment's names, settings and size, a namespace the lab's label, in place.

    Other documents stay as they are.
    """
    if document["kind"] == "Namespace":
        document["metadata"]["name"] = application.namespace
        # Not in the manifest: whoever applies that by hand owns what comes of it, and the lab must not delete it.
        document["metadata"].setdefault("labels", {})[LABEL] = MARK
    else:
        document["metadata"]["namespace"] = application.namespace
    template = document.get("spec", {}).get("template")
    if template is None:
        return
    if replicas is not None and document["kind"] == "StatefulSet":
        document["spec"]["replicas"] = replicas
    own = application.environment if document["kind"] == "StatefulSet" else application.names
    for container in (*template["spec"].get("initContainers", []), *template["spec"]["containers"]):
        environment = {entry["name"]: entry for entry in container.get("env", [])}
        environment |= {name: {"name": name, "value": value} for name, value in own.items()}
        container["env"] = list(environment.values())
        container["args"] = _arguments(container.get("args", []), application)
        if application.cpu_request:
            container["resources"]["requests"]["cpu"] = application.cpu_request


def _arguments(words: list[str], application: DemoApplication) -> list[str]:
    sized = [_figure(word, before, application) for before, word in zip(["", *words], words, strict=False)]
    is_load = sized[:1] in (["preload"], ["steady"])
    return [*sized, "--quiet", ",".join(map(str, application.quiet))] if is_load and application.quiet else sized


def _figure(word: str, before: str, application: DemoApplication) -> str:
    # The loads' sizes are arguments, not variables: `--records 1000000`, `--rate 500`.
    figures = {
        "--records": application.records,
        "--keys": application.records,
        "--rate": application.rate,
        "--replication-factor": application.copies,
    }
    return str(figures[before]) if before in figures else word
