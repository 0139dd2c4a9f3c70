"""The pipeline where its users run it: the chart's CronJob in its own image, on the record of what just happened.

One application, one topic and one release for all tests, in file order. The image must be in the lab's cache before:
`python -m lab build --analytics`, as `make test PART=record` does.
"""

import base64
import gzip
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.build.plan import build_analytics
from lab.clusters.cluster import Session
from lab.clusters.embedded import import_image
from lab.clusters.kubectl import Kubectl, wait_until
from lab.node.layout import Layout
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.demo_application import DemoApplication, fresh_name
from lab.scenarios.faults import volume_folder
from lab.scenarios.operator_deployment import NAMESPACE
from lab.scenarios.stream_app import StreamAppScenario
from lab.settings import Settings
from streamapp.analytics.tables.bronze_schemas import TABLES
from tests.analytics.support.reading import records

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(900)]
PLACE = "t-analytics"
CRONJOB = "streamapp-operator-analytics"
OF_TOPIC, OF_FILES, RECORD = "tables-of-topic", "tables-of-files", "record"
PARTITIONS = 3
SMALL = {"memory": "1g", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}}
FAIL_SECONDS = 120
FROM_THE_ARCHIVE = 5000
"""Classes, of some 15,000 that a run loads: without the image's archive none is."""


@pytest.fixture(scope="module")
def topic(bootstrap: str) -> Iterator[str]:
    name = f"record-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
    yield name
    admin.delete_topics([name])[name].result(30)


def claim(name: str) -> str:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": NAMESPACE}
    return json.dumps({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def install(kubectl: Kubectl, topic: str, source: str, tables: str) -> None:
    """Have one operator write its record into a claim and a topic, and the CronJob read one of the two."""
    record = {
        "volume": {"existingClaim": RECORD},
        "closeSeconds": 10,
        "kafka": {"bootstrapServers": "kafka.kafka.svc:9092", "topic": topic},
    }
    job = {"enabled": True, "source": source, "tables": {"existingClaim": tables}, **SMALL}
    operator_deployment.deploy(kubectl, replicas=1, record=record, analytics=job)


@pytest.fixture(scope="module")
def release(session: Session, kubectl: Kubectl, topic: str, operator: None) -> Iterator[str]:  # noqa: ARG001 (it is renewed)
    """Give the topic of a release whose CronJob reads it."""
    settings = Settings.from_environment()
    import_image(Layout(settings.state), build_analytics(settings), session)
    for name in (RECORD, OF_TOPIC, OF_FILES):
        kubectl.apply(claim(name))
    install(kubectl, topic, "kafka", OF_TOPIC)
    yield topic
    kubectl.run("delete", "jobs", "--namespace", NAMESPACE, "--all")
    operator_deployment.deploy(kubectl)
    kubectl.run("delete", "pvc", "--namespace", NAMESPACE, RECORD, OF_TOPIC, OF_FILES)


@pytest.fixture(scope="module")
def app(kubectl: Kubectl, bootstrap: str, release: str) -> Iterator[StreamAppScenario]:  # noqa: ARG001 (it records)
    """Have something happen: an application that grows by a pod and loses it again."""
    settings = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
    application = DemoApplication(fresh_name(), settings, 2_000, 20, PLACE, cpu_request="20m")
    demo_application.remove(kubectl, bootstrap, PLACE)
    app = StreamAppScenario(kubectl, application)
    app.preload()
    app.apply(2)
    app.wait_until_converged(2)
    for replicas in (3, 2):
        app.scale(replicas)
        app.wait_until_converged(replicas)
    yield app
    demo_application.remove(kubectl, bootstrap, PLACE)


def written(bootstrap: str, topic: str) -> int:
    """Lines that the topic has."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, each), 20)[1] for each in range(PARTITIONS)]
    finally:
        consumer.close()
    return sum(ends)


def pods_of(kubectl: Kubectl, job: str) -> list[dict[str, Any]]:
    listed = kubectl.json("get", "pods", "--namespace", NAMESPACE, "--selector", f"job-name={job}")["items"]
    return [dict(pod) for pod in listed]


def log_of(kubectl: Kubectl, job: str) -> str:
    return kubectl.run("logs", "--namespace", NAMESPACE, f"job/{job}", "--tail=-1")


def make(kubectl: Kubectl, job: str, **more: list[Any]) -> None:
    """Make a job whose container has more arguments or variables than the CronJob's."""
    made = ("create", "job", job, f"--from=cronjob/{CRONJOB}", "--namespace", NAMESPACE, "--dry-run=client")
    whole = kubectl.json(*made)
    (container,) = whole["spec"]["template"]["spec"]["containers"]
    container |= {name: container.get(name, []) + added for name, added in more.items()}
    kubectl.run("create", "--filename=-", stdin=json.dumps(whole))


def done(kubectl: Kubectl, job: str, cronjob: str = CRONJOB, **more: list[Any]) -> str:
    """Make a job, as the documentation says unless there is more, wait for its good end, and give its log."""
    if more:
        make(kubectl, job, **more)
    else:
        kubectl.run("create", "job", job, f"--from=cronjob/{cronjob}", "--namespace", NAMESPACE)

    def ended() -> bool:
        status = kubectl.json("get", f"job/{job}", "--namespace", NAMESPACE)["status"]
        assert not status.get("failed"), log_of(kubectl, job)
        return bool(status.get("succeeded"))

    wait_until(f"job {job} complete", ended, 600, 1)
    return log_of(kubectl, job)


def lines(root: Path) -> list[tuple[str, int]]:
    """What tells lines apart, of all lines in bronze."""
    return sorted((row["recorder"], row["seq"]) for table in TABLES.values() for row in records(root, table))


def test_a_run_takes_in_the_topic_and_leaves_a_report_that_can_be_fetched(
    kubectl: Kubectl, bootstrap: str, app: StreamAppScenario, release: str
) -> None:
    before = written(bootstrap, release)
    log = done(kubectl, "first")
    print(log)  # noqa: T201 (what a person sees)
    root = volume_folder(kubectl, NAMESPACE, OF_TOPIC)
    taken = lines(root)
    assert before <= len(taken) <= written(bootstrap, release)
    assert len(set(taken)) == len(taken)
    steps = {(row["namespace"], row["from_replicas"], row["to_replicas"]) for row in records(root, "s_scale_episode")}
    assert {(PLACE, 2, 3), (PLACE, 3, 2)} <= steps
    assert f"| {PLACE}/{app.name} |" in log
    assert log.splitlines()[-1] == f"ConfigMap {NAMESPACE}/streamapp-insight: written"
    insight = kubectl.json("get", "configmap", "streamapp-insight", "--namespace", NAMESPACE)["data"]["insight.json"]
    assert insight == (root / "insight.json").read_text()

    packed = done(kubectl, "fetch", f"{CRONJOB}-report")
    page = gzip.decompress(base64.b64decode(packed))
    assert page == (root / "report.html").read_bytes()
    assert f"{PLACE}/{app.name}" in page.decode()


def test_the_next_run_takes_in_what_is_new_and_nothing_twice(kubectl: Kubectl, bootstrap: str, release: str) -> None:
    root = volume_folder(kubectl, NAMESPACE, OF_TOPIC)
    first, before = lines(root), written(bootstrap, release)
    classes = {"name": "JAVA_TOOL_OPTIONS", "value": "-Xlog:class+load:file=/var/lib/streamapp/tables/classes-%p.log"}
    log = done(kubectl, "second", env=[classes])
    taken = lines(root)
    assert before <= len(taken) <= written(bootstrap, release)
    assert len(set(taken)) == len(taken)
    assert set(first) <= set(taken)
    assert (
        f"{len(taken) - len(first)} taken in, 0 doubled, 0 in quarantine" in log
        or f"nothing new in topic {release}" in log
    )
    told = kubectl.json("get", "cronjob", CRONJOB, "--namespace", NAMESPACE)["status"]
    assert told["lastSuccessfulTime"]
    loaded = max((path.read_text() for path in root.glob("classes-*.log")), key=len)
    assert loaded.count("source: shared objects file (top)") > FROM_THE_ARCHIVE


def test_a_run_that_fails_says_why_in_its_log_and_in_its_pods_status(kubectl: Kubectl, release: str) -> None:
    make(kubectl, "failing", args=[f"--topic={release}", "--kafka-properties=/nowhere"])

    def ended() -> list[dict[str, Any]]:
        states = [
            pod["status"].get("containerStatuses", [{}])[0].get("state", {}) for pod in pods_of(kubectl, "failing")
        ]
        return [state["terminated"] for state in states if "terminated" in state]

    wait_until("a pod of the job ended", lambda: bool(ended()), FAIL_SECONDS, 1)
    told = ended()[0]
    assert (told["exitCode"], told["message"].splitlines()) == (
        1,
        ["error: /nowhere", "cause: there is no such folder", "next:  name one with a file for each property"],
    )
    assert told["message"] in log_of(kubectl, "failing")
    kubectl.run("delete", "job", "failing", "--namespace", NAMESPACE)


@pytest.mark.usefixtures("release")
def test_its_account_has_the_right_to_write_insight_and_no_other(kubectl: Kubectl) -> None:
    (pod,) = pods_of(kubectl, "second")
    assert pod["spec"]["serviceAccountName"] == CRONJOB
    assert {kind for volume in pod["spec"]["volumes"] for kind in volume} == {
        "name",
        "emptyDir",
        "persistentVolumeClaim",
        "projected",
    }
    listed = ("auth", "can-i", "--list", "--no-headers", "--namespace", NAMESPACE)
    of_anybody, of_job = (
        sorted(kubectl.run(*listed, f"--as=system:serviceaccount:{NAMESPACE}:{name}").splitlines())
        for name in ("nobody-at-all", CRONJOB)
    )
    (own,) = set(of_job) - set(of_anybody)
    assert own.split() == ["configmaps", "[]", "[streamapp-insight]", "[get", "patch]"]
    assert set(of_anybody) <= set(of_job)


def test_a_run_takes_in_the_files_of_the_claim_while_the_operator_writes_there(kubectl: Kubectl, release: str) -> None:
    install(kubectl, release, "files", OF_FILES)
    log = done(kubectl, "of-files")
    root, of_topic = (volume_folder(kubectl, NAMESPACE, name) for name in (OF_FILES, OF_TOPIC))
    taken = lines(root)
    assert f"{len(taken)} taken in, 0 doubled, 0 in quarantine" in log
    steps = {(row["namespace"], row["from_replicas"], row["to_replicas"]) for row in records(root, "s_scale_episode")}
    assert {(PLACE, 2, 3), (PLACE, 3, 2)} <= steps
    # What the second run took from the topic was in files that have been finished since.
    recorders = {recorder for recorder, _ in taken}
    assert {line for line in lines(of_topic) if line[0] in recorders} <= set(taken)
