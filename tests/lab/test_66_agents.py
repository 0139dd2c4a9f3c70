"""The agent itself: how it comes into an application that runs, and how it takes a hostile knock on its port.

One application with a standby, under load, first without the agent.
"""

import json
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.api_changes import Change, watch_history
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from tests.lab.agents_door import LEAVING, PORT, REPORT, address, ask, bearer, secret
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(420)]


@pytest.fixture(scope="module")
def one(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy the application with three pods under load, without the agent."""
    settings = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
    application = DemoApplication(unique_name("agents"), settings, 120_000, 200, "t-agents", cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    observed = ObservedApp.of(kubectl, bootstrap, application)
    start_all({observed: 3})
    yield observed
    remove_all(kubectl, bootstrap, [application])


def test_the_agent_comes_pod_by_pod_and_nothing_rests_on_it_before_it_is_in_all(
    one: ObservedApp, session: Session
) -> None:
    began = one.clock()
    assert one.app.status()["learnerSource"] == "Standbys"
    with ExitStack() as stack:
        apps = stack.enter_context(watch_history(session, one.app.namespace, "streamapps"))
        pods = stack.enter_context(
            watch_history(session, one.app.namespace, "pods", f"--selector=streamapp.dev/app={one.app.name}")
        )
        one.patch({"agent": {"enabled": True}})
        one.app.wait_until_converged(3)
        while one.app.status()["learnerSource"] != "OnDemand":
            time.sleep(1)
        one.app.wait_until_converged(3)
        newest = {str(pod["metadata"]["labels"]["controller-revision-hash"]) for pod in one.app.pods()}
        told = [each.object for each in apps.changes() if each.object["status"].get("learnerSource") == "OnDemand"]
        # The last pod may restart with its agent just then: it does not run, and is asked for nothing.
        seen = pods.changes()
        assert told
        assert all(revisions_at(version(status), seen) == newest for status in told)
        assert all(len(down) == 1 for down in pods.pods_down(among=3))
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


def version(live: Mapping[str, Any]) -> int:
    """The revision of the store that wrote it: one counter for all objects of a cluster."""
    return int(live["metadata"]["resourceVersion"])


def revisions_at(revision: int, pods: Sequence[Change]) -> set[str]:
    """The templates of the pods that stayed at that revision of the store."""
    known = {each.name: each for each in pods if version(each.object) <= revision}
    kept = (each.object["metadata"] for each in known.values() if each.kind != "DELETED")
    return {str(one["labels"]["controller-revision-hash"]) for one in kept if "deletionTimestamp" not in one}


def test_without_the_token_nothing_is_told_and_nothing_is_taken(one: ObservedApp) -> None:
    host = address(one, 0)
    body = announcement(lease=99, counter=2**40)
    for headers in ({}, {"Authorization": "Bearer guessed"}, {"Authorization": f"Bearer {secret(one)}0"}):
        assert [ask(host, "GET", REPORT, headers)[0], ask(host, "PUT", LEAVING, headers, body)[0]] == [401, 401]
    status, answer = ask(host, "GET", "/healthz", {})
    assert (status, answer.decode().strip()) == (200, "ok")


def test_an_older_word_is_refused(one: ObservedApp) -> None:
    host = address(one, 0)
    status, answer = ask(host, "PUT", LEAVING, bearer(one), announcement(lease=0, counter=1))
    assert (status, "epoch" in json.loads(answer)) == (409, True)


def test_a_huge_body_is_not_read(one: ObservedApp) -> None:
    host = address(one, 0)
    with socket.create_connection((host, PORT), 5) as knock:
        head = f"PUT {LEAVING} HTTP/1.1\r\nHost: agent\r\nAuthorization: Bearer {secret(one)}\r\n"
        knock.sendall(f"{head}Content-Length: 10000000000\r\n\r\n".encode())
        answer = knock.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413")
    assert_well(one, host)


def test_clients_that_say_nothing_delay_others_for_seconds_at_most(one: ObservedApp) -> None:
    """They fill all threads and the queue behind them, until their time for a request is over."""
    host = address(one, 0)
    with ExitStack() as stack:
        for _ in range(50):
            idle = stack.enter_context(socket.create_connection((host, PORT), 5))
            idle.sendall(b"PUT ")
        wait_until("somebody with the token is answered", lambda: is_answered(one, host), SESSION_TIMEOUT_SECONDS)
    assert_well(one, host)


def test_the_application_has_not_noticed_the_knocks(one: ObservedApp) -> None:
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in one.app.pods()] == [0, 0, 0]
    one.app.scale(2)
    one.app.wait_until_converged(2)
    require_no_record_lost(one)


def announcement(*, lease: int, counter: int) -> bytes:
    """One that takes everybody away."""
    body = {"epoch": {"lease": lease, "counter": counter}, "ttlSeconds": 60, "rebalance": "Eager", "processIds": []}
    return json.dumps(body).encode()


def is_answered(one: ObservedApp, host: str) -> bool:
    try:
        return ask(host, "GET", REPORT, bearer(one))[0] == 200
    except (ConnectionError, TimeoutError):
        return False


def assert_well(one: ObservedApp, host: str) -> None:
    """See that whoever has the token gets an answer at once."""
    status, answer = ask(host, "GET", REPORT, bearer(one))
    assert (status, json.loads(answer)["version"]) == (200, 1)
