"""Agents with a certificate: asked over TLS alone, and another authority in mid-hold restarts nobody.

One application without standbys, under load. The chart's own value lets the operator read the certificate.
"""

import json
import socket
import ssl
from collections.abc import Iterator

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import NAME, ON_DEMAND
from tests.brokers.certificates import Authority
from tests.lab.agents_door import PORT, REPORT, address
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(420)]

NAMESPACE, SECRET = "t-agents-tls", "counter-agents"
FIRST, SECOND = Authority("agents"), Authority("agents anew")
KUBELET_SECONDS = 150.0
"""Within two minutes the kubelet writes what is new in a Secret."""


def renew(kubectl: Kubectl, authority: Authority, told: Authority | None = None) -> None:
    """Write the Secret as cert-manager does: certificate, key and authority at once; `told` is another authority."""
    issued = authority.issue("agents", (f"*.{NAME}.{NAMESPACE}.svc",))
    texts = {"tls.crt": issued.chain, "tls.key": issued.key, "ca.crt": (told or authority).pem}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "stringData": texts,
    }
    kubectl.apply(json.dumps(secret))


def presents(one: ObservedApp, ordinal: int, authority: Authority) -> bool:
    """Whether the agent of a pod has a certificate of this authority, for the pod's own name."""
    trusts = ssl.create_default_context(cadata=authority.pem)
    name = f"{NAME}-{ordinal}.{NAME}.{NAMESPACE}.svc"
    try:
        with socket.create_connection((address(one, ordinal), PORT), 5) as plain:
            trusts.wrap_socket(plain, server_hostname=name).close()
    except ssl.SSLCertVerificationError:
        return False
    return True


@pytest.fixture(scope="module")
def one(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy the application with three pods under load, its certificate before it."""
    values = operator_deployment.lab_values()
    readable = {**values.get("agent", {}), "tlsSecrets": [{"namespace": NAMESPACE, "name": SECRET}]}
    application = DemoApplication(unique_name("agents-tls"), {}, 60_000, 200, NAMESPACE, cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    demo_application.apply(kubectl, application, "namespace.yaml")
    operator_deployment.deploy(kubectl, agent=readable)
    renew(kubectl, FIRST)
    observed = ObservedApp.of(kubectl, bootstrap, application)
    agent = {"enabled": True, "tls": {"secretRef": {"name": SECRET}}}
    start_all({observed: 3}, lambda _: {**ON_DEMAND, "agent": agent})
    yield observed
    remove_all(kubectl, bootstrap, [application])
    operator_deployment.deploy(kubectl)


def test_agents_present_the_certificate_and_do_not_answer_without_tls(one: ObservedApp) -> None:
    wait_until("the operator hears every agent", lambda: one.app.status()["learnerSource"] == "OnDemand", 60)
    assert all(presents(one, ordinal, FIRST) for ordinal in range(3))
    with socket.create_connection((address(one, 0), PORT), 5) as plain:
        plain.sendall(f"GET {REPORT} HTTP/1.1\r\nHost: agent\r\n\r\n".encode())
        assert b"HTTP/1.1 200" not in plain.recv(4096)


def test_a_pod_goes_while_another_authority_comes_and_nobody_restarts(one: ObservedApp, kubectl: Kubectl) -> None:
    began, before = one.clock(), one.pods()
    renew(kubectl, SECOND)
    one.app.scale(2)
    one.app.wait_until_converged(2)
    wait_until(
        "both agents present a certificate of the new authority",
        lambda: all(presents(one, ordinal, SECOND) for ordinal in range(2)),
        KUBELET_SECONDS,
    )
    one.app.scale(3)
    one.app.wait_until_converged(3)
    wait_until("the operator hears every agent", lambda: one.app.status()["learnerSource"] == "OnDemand", 90)
    assert {ordinal: one.pods()[ordinal] for ordinal in range(2)} == {ordinal: before[ordinal] for ordinal in range(2)}
    assert presents(one, 2, SECOND)
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


def test_an_authority_that_issued_no_certificate_of_the_agents_is_named(one: ObservedApp, kubectl: Kubectl) -> None:
    """The former authority is trusted for five minutes; the operator is made anew, so that it knows none."""
    renew(kubectl, SECOND, told=Authority("others"))
    operator_deployment.kill(kubectl)
    one.app.scale(2)
    one.wait_until_held("AgentUntrusted", 120)
    assert len(one.pods()) == 3
    renew(kubectl, SECOND)
    one.app.wait_until_converged(2)
    require_no_record_lost(one)
