"""Two installations of the operator side by side; and meanwhile an application at rest that nothing can help.

The second installation serves the StreamApp `older`. The first one serves `blocked`: a transaction that hangs in its
changelog keeps tasks from being restored. How long the operator asks for rebalances there takes ten minutes to see, so
it is asked last. In file order; each begins where the one before ended.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import KafkaException, Producer

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.api_changes import watch_history, writes_of_the_operator
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import process_id, volume_folder
from lab.scenarios.observed_app import PARTITIONS, ObservedApp, remove_all, unique_name
from lab.scenarios.stream_app import StreamAppScenario
from streamapp.api.names import APPLICATION_ID, OPERATOR_LABEL, PROCESS_ID
from tests.lab.leading import SAYS_WHO_LEADS, assignments
from tests.lab.promises import SESSION_TIMEOUT_SECONDS
from tests.lab.second_installation import NAME, SecondInstallation, labelled, second_installation

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(1200)]

OLDER, BLOCKED = "t-second-older", "t-blocked"
STANDBY = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
EXACTLY_ONCE = {"EXACTLY_ONCE": "true", "JDK_JAVA_OPTIONS": f"-Xmx192m -XX:+UseSerialGC {SAYS_WHO_LEADS}"}
UNTOUCHED_SECONDS = 60.0
TRANSACTION_SECONDS = 900
"""The longest that the broker lets one be open."""
ASKED_FOR_AT_LEAST = timedelta(minutes=4)
"""Of the six rebalances that the operator triggers at rest in vain, the last comes five minutes after the first."""
LONGER_THAN_ANY_PAUSE = timedelta(seconds=330)
"""Between two triggered rebalances lie five minutes at most."""
_TIMEOUT_SECONDS = 20


@dataclass(frozen=True)
class SideBySide:
    """What runs."""

    second: SecondInstallation
    older: ObservedApp
    """Of the second installation."""
    blocked: ObservedApp
    """Of the first."""
    younger_namespace: str
    """Of the second, too; nothing is in it."""
    began: datetime


@pytest.fixture(scope="module")
def side(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[SideBySide]:  # noqa: ARG001 (it must run)
    """Deploy both with two pods; only the older one has load."""
    older_application, blocked_application = applications = [
        DemoApplication(unique_name("older"), STANDBY, 5_000, 50, OLDER, cpu_request="20m"),
        DemoApplication(unique_name("blocked"), STANDBY | EXACTLY_ONCE, 5_000, 50, BLOCKED, cpu_request="20m"),
    ]
    began, younger = datetime.now(UTC), f"t-second-younger-{uuid.uuid4().hex[:6]}"
    remove_all(kubectl, bootstrap, applications)
    kubectl.run("create", "namespace", younger)
    for each in applications:
        demo_application.begin_preload(kubectl, each)
    older, blocked = (ObservedApp.of(kubectl, bootstrap, each) for each in (older_application, blocked_application))
    with second_installation(kubectl, OLDER, younger) as second:
        for each in applications:
            demo_application.finish_preload(kubectl, each)
        blocked.app.apply(2)
        kubectl.apply(json.dumps(labelled(older.app.resource(2))))
        older.app.wait_until_converged(2)
        blocked.app.wait_until_converged(2)
        older.start_load()
        yield SideBySide(second, older, blocked, younger, began)
    remove_all(kubectl, bootstrap, applications)
    kubectl.run("delete", "namespace", younger, "--wait=false")


@pytest.fixture(scope="module")
def hanging(side: SideBySide, bootstrap: str) -> Producer:
    """Open a transaction in every partition of the changelog; of a restore, no reader of committed records sees more.

    Kafka Streams restores to the end of the log, which lies behind it.
    """
    application = side.blocked.app.application
    settings = {
        "transactional.id": f"{application.application_id}-hanging",
        "transaction.timeout.ms": TRANSACTION_SECONDS * 1000,
    }
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    producer.init_transactions(_TIMEOUT_SECONDS)
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(application.changelog_topic, b"hanging", key=b"hanging", partition=partition)
    assert producer.flush(_TIMEOUT_SECONDS) == 0
    return producer


@pytest.mark.usefixtures("hanging")
def test_a_restore_that_a_hanging_transaction_blocks_shows_on_the_resource(side: SideBySide) -> None:
    side.blocked.delete_pod(1)
    wait_until("the pod is back", lambda: side.blocked.app.status().get("readyReplicas") == 2, 120)
    wait_until_not_converged(side.blocked, "TasksRestoring", 120)


@pytest.mark.guarantee(8)
def test_of_two_installations_one_serves_a_streamapp_and_the_other_writes_nothing(
    side: SideBySide, kubectl: Kubectl
) -> None:
    older = side.older
    older.app.apply(2)  # without the label: whose it is, only its StatefulSet says now
    assert OPERATOR_LABEL not in older.app.read()["metadata"].get("labels", {})
    found = kubectl.json("get", "statefulset", older.app.name, "--namespace", OLDER)
    assert found["metadata"]["labels"][OPERATOR_LABEL] == NAME
    older.app.wait_until_converged(2)
    untouched = stands_still(lambda: older.app.read()["metadata"]["resourceVersion"], UNTOUCHED_SECONDS)
    wait_until("nobody writes to it", untouched, 240, 1)
    assert older.app.condition("Stalled")["status"] == "False"
    older.raise_to(3)
    older.app.wait_until_converged(3)
    told = [line for line in operator_deployment.logs(kubectl).splitlines() if f'"{OLDER}/{older.app.name}"' in line]
    assert any("streamapp of another installation" in line for line in told)


def test_a_new_process_creates_nothing_while_pods_of_a_namespace_that_it_cannot_list_are_in_the_group(
    side: SideBySide, session: Session
) -> None:
    older, namespace = side.older, side.younger_namespace
    began, pods = older.clock(), older.pods()
    younger = StreamAppScenario(older.app.kubectl, replace(older.app.application, namespace=namespace), "younger")
    with watch_history(session, namespace, "statefulsets") as made:
        younger.kubectl.apply(json.dumps(labelled(younger.resource(2))))
        wait_until_stalled(younger, "ApplicationIdTaken", 60)
        with side.second.without_rights_in(OLDER):
            side.second.restart()
            wait_until_stalled(younger, "NamespaceUnlisted", 60)
            assert OLDER in younger.condition("Stalled")["message"]
            assert reasons_within(younger, 15) == {"NamespaceUnlisted"}
        wait_until_stalled(younger, "ApplicationIdTaken", 120)
        assert f"{OLDER}/{older.app.name}" in younger.condition("Stalled")["message"]
        assert made.changes() == []
    assert younger.pods() == []
    assert older.pods() == pods
    assert older.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    younger.kubectl.run("delete", "--namespace", namespace, f"streamapp/{younger.name}")


@pytest.mark.guarantee(5)
def test_a_streamapp_that_is_made_anew_with_another_application_id_scales_down_on_kept_claims(
    side: SideBySide,
) -> None:
    older, kubectl = side.older, side.older.app.kubectl
    claims, former = [older.claim_uid(ordinal) for ordinal in range(3)], older.app.application
    assert {recorded(older, ordinal)[0] for ordinal in range(3)} == {former.application_id}
    kubectl.run("delete", "--namespace", OLDER, f"streamapp/{older.app.name}", "--wait")
    wait_until("no pod is left", lambda: not older.app.pods(), 120)
    anew = ObservedApp.of(kubectl, older.bootstrap, under_another_id(former))
    kubectl.apply(json.dumps(labelled(anew.app.resource(3))))
    anew.app.wait_until_converged(3)
    assert [anew.claim_uid(ordinal) for ordinal in range(3)] == claims
    anew.app.scale(2)
    wait_until("the step is over", lambda: anew.steps() == [(3, 2)], 120)
    assert anew.app.condition("ProcessIdentityStable")["status"] == "True"
    application_id = anew.app.application.application_id
    folders = (volume_folder(kubectl, OLDER, f"state-{anew.app.name}-{ordinal}") for ordinal in range(2))
    own = [(application_id, process_id(folder, application_id)) for folder in folders]
    assert [recorded(anew, ordinal) for ordinal in range(2)] == own


def test_the_first_installation_wrote_nothing_to_what_the_second_serves(side: SideBySide) -> None:
    assert writes_of_the_operator(side.began, {OLDER, side.younger_namespace}) == []


@pytest.mark.usefixtures("hanging")
def test_an_application_at_rest_is_not_rebalanced_for_ever(side: SideBySide) -> None:
    """Every five minutes is for ever, too: so the group is watched for longer than that.

    If the broker ends the transaction before, the next rebalance shows that the tasks run.
    """

    def are_over() -> bool:
        return datetime.now(UTC) - max(assignments(side.blocked)) > LONGER_THAN_ANY_PAUSE

    wait_until("no rebalance for longer than any pause", are_over, 1080, 5)
    back_since = datetime.fromisoformat(side.blocked.pod(1)["metadata"]["creationTimestamp"])
    assert max(assignments(side.blocked)) - back_since > ASKED_FOR_AT_LEAST
    assert side.blocked.app.condition("Converged")["reason"] == "TasksRestoring"


def test_a_scale_down_triggers_rebalances_again_and_is_made(side: SideBySide, hanging: Producer) -> None:
    with suppress(KafkaException):  # the broker may have ended it
        hanging.abort_transaction(_TIMEOUT_SECONDS)
    side.blocked.app.scale(1)
    wait_until("the pod goes", lambda: side.blocked.app.granted() == 1, 180)
    wait_until("the step is over", lambda: side.blocked.steps() == [(2, 1)], 120)
    assert "forced" not in side.blocked.app.status()["lastSteps"][0]


def under_another_id(application: DemoApplication) -> DemoApplication:
    """The same application on the same topics, as another one for Kafka Streams."""
    topics = {"INPUT_TOPIC": application.input_topic, "OUTPUT_TOPIC": application.output_topic}
    settings = {**application.settings, **topics}
    return replace(application, application_id=f"{application.application_id}-anew", settings=settings)


def recorded(one: ObservedApp, ordinal: int) -> tuple[str, str]:
    """The application ID and the process ID on the claim of an ordinal."""
    claim = ("persistentvolumeclaim", f"state-{one.app.name}-{ordinal}", "--namespace", one.app.namespace)
    annotations = one.app.kubectl.json("get", *claim)["metadata"]["annotations"]
    return annotations[APPLICATION_ID], annotations[PROCESS_ID]


def stands_still(read: Callable[[], object], seconds: float) -> Callable[[], bool]:
    """Give a question: whether what is read has been the same for so long."""
    last, since = read(), time.monotonic()

    def is_still() -> bool:
        nonlocal last, since
        now = read()
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since >= seconds

    return is_still


def reasons_within(app: StreamAppScenario, seconds: float) -> set[str]:
    """The reasons for which a StreamApp is told to be stalled within so many seconds."""
    reasons, ends = set(), time.monotonic() + seconds
    while time.monotonic() < ends:
        reasons.add(str(app.condition("Stalled").get("reason", "")))
        time.sleep(1)
    return reasons


def wait_until_stalled(app: StreamAppScenario, reason: str, timeout_seconds: float) -> None:
    """Wait until the resource says that it is stalled for this reason."""

    def told() -> bool:
        condition = app.condition("Stalled")
        return (condition.get("status"), condition.get("reason")) == ("True", reason)

    wait_until(f"{app.namespace}/{app.name}: stalled, {reason}", told, timeout_seconds)


def wait_until_not_converged(one: ObservedApp, reason: str, timeout_seconds: float) -> None:
    """Wait until the resource says that the group has not converged for this reason."""
    wait_until(
        f"{one.app.namespace}: {reason}",
        lambda: one.app.condition("Converged").get("reason") == reason,
        timeout_seconds,
    )
