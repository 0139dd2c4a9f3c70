"""`kubectl streamapp conformance` as a user runs it: once where everything holds, once where the operator cannot act.

What a run made is compared with what is there afterwards: objects, volume claims and topics.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import operator_deployment
from tests.lab.plugin import Ran, run_kubectl
from tests.lab.promises import SESSION_TIMEOUT_SECONDS

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(600)]

IMAGE = "localhost/streamapp/counter:lab"
SERVERS = "kafka.kafka.svc:9092"
MADE = "streamapps,statefulsets,pods,services,persistentvolumeclaims,poddisruptionbudgets"


def command(namespace: str, *arguments: str) -> tuple[str, ...]:
    whole = ("streamapp", "conformance", "--namespace", namespace, "--image", IMAGE, "--bootstrap-servers", SERVERS)
    return (*whole, "--yes", *arguments)


def checks(ran: Ran) -> dict[str, dict[str, Any]]:
    return {one["check"]: one for one in json.loads(ran.out)["checks"]}


def left_in(kubectl: Kubectl, namespace: str) -> list[str]:
    return kubectl.run("get", MADE, "--namespace", namespace, "--output=name").split()


def topics(bootstrap: str) -> list[str]:
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics
    return [name for name in found if name.startswith("conformance-")]


@pytest.mark.usefixtures("operator")
def test_everything_holds_and_nothing_is_left(
    session: Session, kubectl: Kubectl, namespace: str, bootstrap: str
) -> None:
    ran = run_kubectl(session, *command(namespace, "--output", "json"), timeout_seconds=550)
    rows = checks(ran)
    assert {name: row["result"] for name, row in rows.items()} == dict.fromkeys(rows, "pass")
    assert list(rows) == [
        *("rights", "definition", "operator", "start", "growth", "hold", "step", "gap"),
        *("eviction", "identity", "volumes", "records", "way back"),
    ]
    assert all(rows[name]["seconds"] > 0 for name in ("growth", "gap", "eviction"))
    assert rows["gap"]["seconds"] < SESSION_TIMEOUT_SECONDS
    # Two readings, which a hold waits for, lie ten seconds apart.
    assert rows["hold"]["seconds"] >= 10
    assert (ran.code, json.loads(ran.out)["left"]) == (0, [])
    wait_until("nothing is left", lambda: left_in(kubectl, namespace) == [], 60)
    assert topics(bootstrap) == []


@pytest.mark.usefixtures("operator")
def test_an_operator_without_rights_shows_in_the_table(
    session: Session, kubectl: Kubectl, namespace: str, bootstrap: str
) -> None:
    rules = kubectl.json("get", "clusterrole/streamapp-operator")["rules"]
    poorer = [rule for rule in rules if "statefulsets" not in rule["resources"]]
    patch = ("patch", "clusterrole/streamapp-operator", "--type=merge")
    kubectl.run(*patch, f"--patch={json.dumps({'rules': poorer})}")
    try:
        ran = run_kubectl(session, *command(namespace, "--timeout", "45s", "--output", "json"), timeout_seconds=400)
    finally:
        kubectl.run(*patch, f"--patch={json.dumps({'rules': rules})}")
        operator_deployment.pod_name(kubectl)
    results = {name: row["result"] for name, row in checks(ran).items()}
    assert {name for name, result in results.items() if result == "pass"} <= {"rights", "definition", "operator"}
    assert [name for name, result in results.items() if result == "fail"] in (["start"], ["operator"])
    assert checks(ran)["growth"]["seen"].endswith("failed")
    assert ran.code == 1
    wait_until("nothing is left", lambda: left_in(kubectl, namespace) == [], 60)
    assert topics(bootstrap) == []


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (("--storage-class", "missing"), "PersistentVolumeClaim"),
        (("--replication-factor", "3"), "replication factor"),
    ],
    ids=["no-volume", "too-few-brokers"],
)
def test_what_the_cluster_cannot_give_is_the_row_that_fails(
    session: Session, kubectl: Kubectl, namespace: str, bootstrap: str, arguments: tuple[str, ...], seen: str
) -> None:
    more = ("--timeout", "60s", "--output", "json", *arguments)
    ran = run_kubectl(session, *command(namespace, *more), timeout_seconds=400)
    rows = checks(ran)
    assert [name for name, row in rows.items() if row["result"] == "fail"] == ["start"]
    assert seen in rows["start"]["seen"]
    assert rows["growth"]["seen"] == "`start` failed"
    assert (ran.code, json.loads(ran.out)["left"]) == (1, [])
    wait_until("nothing is left", lambda: left_in(kubectl, namespace) == [], 60)
    assert topics(bootstrap) == []


@pytest.mark.usefixtures("operator")
def test_ctrl_c_leaves_nothing(session: Session, kubectl: Kubectl, namespace: str, bootstrap: str) -> None:
    environment = dict(session.environment)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    words = (*session.prefix, "kubectl", *command(namespace))
    with subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, start_new_session=True) as running:
        wait_until("the StreamApp", lambda: "streamapp" in " ".join(left_in(kubectl, namespace)), 120)
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(240) == 130
    wait_until("nothing is left", lambda: left_in(kubectl, namespace) == [], 60)
    assert topics(bootstrap) == []
