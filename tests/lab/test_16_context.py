"""`CLUSTER=context` with the lab's own API server as the cluster of the user's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.clusters.cluster import Session
from lab.node.namespaces import INSIDE
from lab.settings import REPOSITORY

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(INSIDE not in os.environ, reason="uses the embedded lab's context as one of the user's own"),
]


def _as_context(session: Session, allowed: str, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        name: value for name, value in session.environment.items() if name not in {INSIDE, "KAFKA_BOOTSTRAP"}
    }
    return subprocess.run(
        [sys.executable, "-m", "lab", *words],
        cwd=REPOSITORY,
        env=environment | {"CLUSTER": "context", "STREAMAPP_LAB_CONTEXTS": allowed},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_session_forwards_the_broker_and_a_session_in_it_uses_that(session: Session) -> None:
    ask = "from confluent_kafka.admin import AdminClient as A; import os; "
    ask += "print(len(A({'bootstrap.servers': os.environ['KAFKA_BOOTSTRAP']}).list_topics(timeout=20).brokers))"
    inner = f'echo $KAFKA_BOOTSTRAP $KUBECONFIG; exec {sys.executable} -m lab exec -- {sys.executable} -c "{ask}"'
    ran = _as_context(session, "streamapp-lab", "exec", "--", "sh", "-c", inner)
    assert ran.returncode == 0, ran.stderr
    address, brokers = ran.stdout.splitlines()
    bootstrap, kubeconfig = address.split()
    assert (bootstrap, brokers) == ("localhost:19094", "1")
    assert kubeconfig != session.environment["KUBECONFIG"]
    assert not Path(kubeconfig).exists()


def test_a_broker_that_is_there_is_up_already(session: Session) -> None:
    ran = _as_context(session, "streamapp-lab", "up")
    assert ran.returncode == 1
    assert "error: broker of the lab: up already" in ran.stderr


def test_a_context_that_is_not_named_is_refused(session: Session) -> None:
    ran = _as_context(session, "production", "up")
    assert ran.returncode == 1
    assert "error: context streamapp-lab: not on the allow-list" in ran.stderr
