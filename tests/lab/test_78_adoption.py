"""A StatefulSet that runs is given to the operator and taken back, under load: no pod restarts, nothing is lost.

Two shapes: as a user writes one, and as the chart of streams-bootstrap makes one. The first goes all the way in file
order, each test from where the one before ended.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.meter.counts import CountVerdict
from lab.meter.measure import wait_until_caught_up
from lab.scenarios import demo_application
from lab.scenarios.demo_application import MANIFESTS, DemoApplication, adapt
from lab.scenarios.layouts.task_layouts import layouts
from lab.scenarios.observed_app import ObservedApp, remove_all, unique_name
from lab.scenarios.stream_app import StreamAppScenario
from tests.lab.plugin import Ran, run_kubectl
from tests.lab.promises import SESSION_TIMEOUT_SECONDS

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]
ONE_STANDBY = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
CHART = "orders-streams-app"
CHART_LABELS = {"app.kubernetes.io/name": "streams-app", "app.kubernetes.io/instance": "orders"}

CALM = {"type": "AverageValue", "averageValue": "1"}

Json = dict[str, Any]


@pytest.fixture(scope="module")
def plain(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Run a StatefulSet as a user writes one, with Kubernetes' own defaults, under load."""
    application = DemoApplication(unique_name("adopted"), ONE_STANDBY, 20_000, 200, "t-adoption", cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    demo_application.preload(kubectl, application)
    service, statefulset = manifests(application, 3)
    del statefulset["spec"]["podManagementPolicy"]
    begin(kubectl, bootstrap, application, service, statefulset)
    observed = ObservedApp.of(kubectl, bootstrap, application)
    observed.start_load()
    yield observed
    remove_all(kubectl, bootstrap, [application])


@pytest.fixture(scope="module")
def bootstrapped(
    kubectl: Kubectl,
    bootstrap: str,
    operator: None,  # noqa: ARG001 (it must run)
) -> Iterator[StreamAppScenario]:
    """Run a StatefulSet of the shape that streams-bootstrap's chart makes."""
    application = DemoApplication(unique_name("orders"), ONE_STANDBY, 2_000, 20, "t-adoption-chart", cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    demo_application.preload(kubectl, application)
    begin(kubectl, bootstrap, application, of_chart(application))
    yield StreamAppScenario(kubectl, application, name=CHART)
    remove_all(kubectl, bootstrap, [application])


def manifests(application: DemoApplication, replicas: int) -> list[Json]:
    """Give the Service and the StatefulSet of the demo."""
    documents = list(yaml.safe_load_all((MANIFESTS / "statefulset.yaml").read_text()))
    for document in documents:
        adapt(document, application, replicas)
    return documents


def of_chart(application: DemoApplication) -> Json:
    """Give labels, names, environment, volume and marks as that chart and Helm would; the image is the demo's."""
    _, statefulset = manifests(application, 2)
    made: Json = copy.deepcopy(statefulset)
    metadata = {"meta.helm.sh/release-name": "orders", "consumerGroup": application.application_id}
    labels = {**CHART_LABELS, "streams-bootstrap/kind": "streams-app", "app.kubernetes.io/managed-by": "Helm"}
    made["metadata"] = {"name": CHART, "namespace": application.namespace, "labels": labels, "annotations": metadata}
    spec = made["spec"]
    spec |= {"serviceName": CHART, "podManagementPolicy": "Parallel", "selector": {"matchLabels": CHART_LABELS}}
    spec["template"]["metadata"] = {"labels": {**CHART_LABELS, "streams-bootstrap/kind": "streams-app"}}
    (container,) = spec["template"]["spec"]["containers"]
    container["name"] = "kafka-app"
    container["env"] += [
        {"name": "APP_APPLICATION_ID", "value": application.application_id},
        {"name": "KAFKA_BOOTSTRAP_SERVERS", "value": "kafka.kafka.svc:9092"},
        {"name": "KAFKA_GROUP_INSTANCE_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "STATE_DIR", "value": "/tmp/kafka-streams"},
    ]
    mounts = {"state": {"name": "datadir", "mountPath": "/tmp/kafka-streams"}}
    container["volumeMounts"] = [mounts.get(mount["name"], mount) for mount in container["volumeMounts"]]
    spec["volumeClaimTemplates"][0]["metadata"]["name"] = "datadir"
    return made


def begin(kubectl: Kubectl, bootstrap: str, application: DemoApplication, *documents: Json) -> None:
    """Apply them, and wait until every record that was preloaded is counted."""
    kubectl.apply(yaml.safe_dump_all(documents))
    kubectl.wait_for_rollout(application.namespace, f"statefulset/{documents[-1]['metadata']['name']}")
    topics = (application.input_topic, application.output_topic)
    wait_until_caught_up(bootstrap, *topics, exactly_once=False, timeout_s=120)


def streamapp(session: Session, app: StreamAppScenario, *arguments: str) -> Ran:
    return run_kubectl(session, "streamapp", *arguments, "--namespace", app.namespace)


def runs(app: StreamAppScenario, selector: str) -> Mapping[str, tuple[str, int]]:
    """Each pod's UID and the restarts of its container."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(each["restartCount"] for each in pod["status"]["containerStatuses"]),
        )
        for pod in app.pods(selector)
    }


def claims(app: StreamAppScenario) -> Mapping[str, str]:
    found = app.kubectl.json("get", "pvc", "--namespace", app.namespace)["items"]
    return {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in found}


def statefulset_of(app: StreamAppScenario) -> Json:
    found: Json = app.kubectl.json("get", f"statefulset/{app.name}", "--namespace", app.namespace)
    return found


def gap_since(plain: ObservedApp, began_ms: int, what: str) -> float:
    """The worst wait of a partition since then, in seconds; shown, since it is the figure that counts."""
    seconds = plain.worst_gap_since(began_ms)
    print(f"worst gap, {what}: {seconds:.2f} s")  # noqa: T201
    return seconds


def test_a_dry_run_names_what_becomes_of_it_and_writes_nothing(plain: ObservedApp, session: Session) -> None:
    before = statefulset_of(plain.app)
    ran = streamapp(session, plain.app, "adopt", "statefulset/counter", "--dry-run", "-o", "json")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert {one["code"] for one in document["findings"]} == {
        *("FieldsDropped", "PodManagementChanges", "RestartsLater", "StateDirAssumed", "UpdateStrategyChanges"),
    }
    plain.app.kubectl.run("apply", "--dry-run=server", "--filename=-", stdin=json.dumps(document["manifest"]))
    after = statefulset_of(plain.app)
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])


def test_what_stands_in_the_way_is_named_on_a_real_api_server(plain: ObservedApp, session: Session) -> None:
    app = plain.app
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "words", "namespace": app.namespace},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app.kubernetes.io/name": "counter"}}},
    }
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "words", "namespace": app.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "counter"},
            "minReplicas": 3,
            "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": CALM}}],
        },
    }
    app.kubectl.apply(yaml.safe_dump_all([budget, scaler]))
    try:
        ran = streamapp(session, app, "adopt", "statefulset/counter", "--yes")
        assert ran.code == 1
        assert "BudgetInTheWay: words" in ran.err
        assert "AutoscalerAims: HorizontalPodAutoscaler words" in ran.err
        assert not app.kubectl.run("get", "streamapps", "--namespace", app.namespace, "--ignore-not-found")
    finally:
        app.kubectl.run("delete", "pdb,hpa", "words", "--namespace", app.namespace)


def test_it_is_adopted_without_a_restart_and_no_task_moves(plain: ObservedApp, session: Session) -> None:
    app, selector = plain.app, demo_application.SELECTOR
    before, volumes = runs(app, selector), claims(app)
    began = plain.clock()
    with layouts(plain.bootstrap, app.application.application_id) as seen:
        wait_until("the tasks are seen", lambda: bool(seen.layouts), 30)
        ran = streamapp(session, app, "adopt", "statefulset/counter", "--yes")
        assert ran.code == 0
        assert (runs(app, selector), claims(app)) == (before, volumes)
        app.wait_until_converged(3)
        # The operator's first look at the group is a rebalance that moves nothing. The process IDs are drawn by Kafka
        # Streams: their first 32 bits, which `layouts` takes for an ordinal, still tell the pods apart.
        assert (seen.failure, seen.moves()) == (None, [])
    assert gap_since(plain, began, "adopted") < SESSION_TIMEOUT_SECONDS
    assert (runs(app, selector), claims(app)) == (before, volumes)
    assert statefulset_of(app)["metadata"]["ownerReferences"][0]["kind"] == "StreamApp"
    members = app.status()["members"]
    assert [(each["ordinal"], "processId" in each) for each in members] == [(0, True), (1, True), (2, True)]


def test_a_held_scale_down_and_a_raise_work_and_volumes_keep_their_ordinals(plain: ObservedApp) -> None:
    plain.patch({"scaleDown": {"stabilizationWindow": "2s"}})
    volumes, began = claims(plain.app), plain.clock()
    plain.app.scale(2)
    plain.app.wait_until_converged(2)
    assert plain.steps() == [(3, 2)]
    plain.app.scale(3)
    plain.app.wait_until_converged(3)
    assert claims(plain.app) == volumes
    assert gap_since(plain, began, "scaled") < SESSION_TIMEOUT_SECONDS


def test_it_is_given_back_without_a_restart_and_the_operator_leaves_it_alone(
    plain: ObservedApp, session: Session
) -> None:
    app, selector = plain.app, demo_application.SELECTOR
    before, volumes = runs(app, selector), claims(app)
    began = plain.clock()
    with layouts(plain.bootstrap, app.application.application_id) as seen:
        wait_until("the tasks are seen", lambda: bool(seen.layouts), 30)
        ran = streamapp(session, app, "disown", "counter", "--yes")
        assert ran.code == 0
        assert (runs(app, selector), claims(app)) == (before, volumes)
        assert (seen.failure, seen.moves()) == (None, [])
    assert gap_since(plain, began, "disowned") < SESSION_TIMEOUT_SECONDS
    assert not app.kubectl.run("get", "streamapps", "--namespace", app.namespace, "--ignore-not-found")
    statefulset = statefulset_of(app)
    assert "ownerReferences" not in statefulset["metadata"]
    assert statefulset["spec"]["selector"] == {"matchLabels": {"app.kubernetes.io/name": "counter"}}
    # The guard of the operator is no longer in the way, and Kubernetes counts the pods as its own.
    demo_application.scale(app.kubectl, app.application, 2)
    wait_until("two pods", lambda: len(app.pods(selector)) == 2, 90)
    assert statefulset_of(app)["spec"]["replicas"] == 2


def test_one_that_helm_made_is_refused_and_adopted_on_the_users_word(
    bootstrapped: StreamAppScenario, session: Session
) -> None:
    app, selector = bootstrapped, "streams-bootstrap/kind=streams-app"
    before, volumes = runs(app, selector), claims(app)
    refused = streamapp(session, app, "adopt", f"statefulset/{CHART}", "--yes")
    assert refused.code == 1
    assert f"ManagedElsewhere: StatefulSet {app.namespace}/{CHART}: Helm" in refused.err
    ran = streamapp(session, app, "adopt", f"sts/{CHART}", "--yes", "--despite-owner")
    assert ran.code == 0
    app.wait_until_converged(2)
    assert (runs(app, selector), claims(app)) == (before, volumes)
    assert set(volumes) == {f"datadir-{CHART}-0", f"datadir-{CHART}-1"}
    spec = app.read()["spec"]
    assert (spec["applicationId"], spec["state"]["mountPath"]) == (app.application.application_id, "/tmp/kafka-streams")
    assert streamapp(session, app, "disown", CHART, "--yes").code == 0
    assert runs(app, selector) == before
    assert statefulset_of(app)["spec"]["selector"] == {"matchLabels": CHART_LABELS}


def test_every_record_was_counted(plain: ObservedApp) -> None:
    # The last one: what the last pod left waits for the session timeout meanwhile, as in any plain StatefulSet.
    counts = plain.counts()
    assert (counts.lost, counts.verdict) == (0, CountVerdict.KEPT)
