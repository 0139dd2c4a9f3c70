"""An application with `group.protocol=streams` on a real broker: scaled down, killed, and its group left as it was.

The group has no standbys: the operator raises them for the scale-down and puts them back. Nothing in the StreamApp says
which protocol the application uses.
"""

import json
import time
from collections.abc import Iterator

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import kill_container, restarts
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND
from streamapp.core.facts.group import StandbySetting
from tests.lab.plugin import run_kubectl
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost
from tests.lab.streams_groups import UNSET, described, standbys, until_left_as_it_was

pytestmark = [pytest.mark.lab, pytest.mark.timeout(420)]

KEYS = 120_000
"""Twenty thousand a task: more than the 10,000 records that a copy may lag."""


@pytest.fixture(scope="module")
def one(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy it with three pods under load."""
    settings = {"STREAMS_GROUP_PROTOCOL": "streams", "EXACTLY_ONCE": "true"}
    made = DemoApplication(unique_name("streams"), settings, KEYS, 100, "t-streams-protocol", cpu_request="20m")
    remove_all(kubectl, bootstrap, [made])
    observed = ObservedApp.of(kubectl, bootstrap, made)
    start_all({observed: 3}, lambda _: ON_DEMAND)
    yield observed
    remove_all(kubectl, bootstrap, [made])


def worst_gap(one: ObservedApp, began: int) -> float:
    """The longest wait of any partition since then, in seconds, which it prints."""
    worst = one.worst_gap_since(began)
    print(f"worst gap {worst:.2f} s")  # noqa: T201 (a figure for the reader)
    return worst


def test_the_operator_sees_tasks_that_run_and_no_copy(one: ObservedApp) -> None:
    group = described(one)
    assert group.streams is not None
    assert (group.streams.broker_release, group.streams.standbys) == ("4.2", UNSET)
    assert [member.assignment.standby for member in group.members if member.assignment] == [frozenset()] * 3
    assert one.app.condition("Converged")["status"] == "True"


def test_the_commands_say_what_counts_for_this_protocol(one: ObservedApp, session: Session) -> None:
    """At rest there is no standby; that they are raised on demand is enough."""

    def said(command: str, *arguments: str) -> str:
        out = run_kubectl(session, "streamapp", command, one.app.name, "-n", one.app.namespace, *arguments).out
        return " ".join(out.split())

    wait_until("every agent is heard", lambda: one.app.condition("LearnersAvailable")["status"] == "True", 60)
    assert one.app.condition("LearnersAvailable")["reason"] == "StandbysOnDemand"
    assert [member["agent"] for member in one.app.status()["members"]] == ["Active"] * 3
    (part,) = json.loads(said("doctor", "-o", "json"))["apps"]
    # The counter asks for one standby by default, and the group of this protocol has none.
    found = [one["code"] for one in part["findings"] if one["kind"] == "Found"]
    assert found == ["StandbysWithoutEffect"]
    assert {"NoCopies", "BrokerAssignorUnknown", "PositionsNotReported", "HeartbeatSlow"} <= set(part["fine"])
    assert "copies on demand" in said("status")
    assert "the group gets standbys when a pod must leave" in said("explain")
    planned = said("scale", "2", "--dry-run")
    assert "The operator raises the standbys of the group for it." in planned
    assert "override" not in planned
    change = said("plan", "--to", "2")
    assert "assignor sticky" in change
    assert "no time is given" not in change


@pytest.mark.guarantee(1)
def test_a_pod_goes_behind_standbys_that_were_asked_for_and_the_group_is_left_as_it_was(one: ObservedApp) -> None:
    began = one.clock()
    one.app.scale(2)
    wait_until("standbys asked for", lambda: standbys(one) == StandbySetting(1, is_set=True), 90)
    one.app.wait_until_converged(2)
    assert one.steps()[0] == (3, 2)
    assert worst_gap(one, began) < SESSION_TIMEOUT_SECONDS
    until_left_as_it_was(one)


def test_a_scale_down_that_is_called_off_leaves_the_group_as_it_was(one: ObservedApp) -> None:
    one.raise_to(3)
    one.app.wait_until_converged(3)
    one.app.scale(2)
    wait_until("a raise on record", lambda: "standbys" in one.record(), 90)
    one.app.scale(3)
    until_left_as_it_was(one)
    assert one.app.granted() == 3


@pytest.mark.guarantee(1)
def test_each_pod_restarts_behind_standbys_that_were_asked_for_and_the_group_is_left_as_it_was(
    one: ObservedApp,
) -> None:
    one.app.wait_until_converged(3)
    began, before = one.clock(), set(one.pods().values())
    one.change_template(rolled="once")
    wait_until("standbys asked for", lambda: standbys(one) == StandbySetting(1, is_set=True), 90)
    wait_until("every pod is a new one", lambda: not before & set(one.pods().values()), 240)
    one.app.wait_until_converged(3)
    assert worst_gap(one, began) < SESSION_TIMEOUT_SECONDS
    until_left_as_it_was(one)


def test_tasks_of_a_killed_pod_do_not_wait_for_the_session_timeout(one: ObservedApp) -> None:
    one.app.wait_until_converged(3)
    began = one.clock()
    # One that was there from the start: members are put out of the group only if they were seen for a while.
    killed = one.pod(1)
    kill_container(killed)
    wait_until("restarted", lambda: restarts(one.pod(1)) > restarts(killed), 60)
    one.app.wait_until_converged(3)
    time.sleep(5)
    assert worst_gap(one, began) < SESSION_TIMEOUT_SECONDS


def test_no_record_was_lost_or_doubled(one: ObservedApp) -> None:
    assert one.app.application.exactly_once
    require_no_record_lost(one)
