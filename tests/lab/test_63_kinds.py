"""Applications of every kind the operator serves, side by side: scaled down, rolled out, killed, left alone.

Each test says what is promised to one of them; what they are judged by is brought about for all of them at once.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.meter.counts import CountVerdict
from lab.scenarios import demo_application
from lab.scenarios.api_changes import WatchHistory, watch_history, writes_of_the_operator
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import fill_memory, kill_container
from lab.scenarios.group import GroupReader
from lab.scenarios.observed_app import (
    PARTITIONS,
    ObservedApp,
    gap_report,
    record_of,
    remove_all,
    start_all,
    unique_name,
)
from streamapp.api.v1alpha1.durations import parse_duration
from tests.lab.promises import SESSION_TIMEOUT_SECONDS

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(600)]
STANDBY = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
KINDS: Mapping[str, Mapping[str, str]] = {
    "threads": {"STREAMS_NUM_STREAM_THREADS": "2"},
    "exactly-once": {"EXACTLY_ONCE": "true"},
    "static-table": {"STATIC_MEMBERSHIP": "true", "TOPOLOGY": "table"},
    "stores": {"TOPOLOGY": "stores"},
}
QUIET_PARTITION = 5
SEEN_FOR_A_WHILE_SECONDS = 15.0
"""Longer than the margin of an eviction: a member must have been seen that long before its container ended."""
QUIET_SECONDS = 60.0
METER_SECONDS = 0.5
"""How far the meter may be off: a partition has an input every 60 ms."""
ROLLED = "rolled"


@pytest.fixture(scope="module")
def kinds(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[dict[str, ObservedApp]]:  # noqa: ARG001
    """Deploy one application of each kind with three pods under load."""
    made = {
        kind: DemoApplication(
            unique_name(kind),
            {**STANDBY, **settings},
            *(10_000, 100),
            f"t-kinds-{kind}",
            cpu_request="20m",
            quiet=(QUIET_PARTITION,) if kind == "threads" else (),
        )
        for kind, settings in KINDS.items()
    }
    remove_all(kubectl, bootstrap, list(made.values()))
    observed = {kind: ObservedApp.of(kubectl, bootstrap, application) for kind, application in made.items()}
    start_all(dict.fromkeys(observed.values(), 3))
    yield observed
    remove_all(kubectl, bootstrap, list(made.values()))


@dataclass(frozen=True)
class Scaled:
    """What became of one of them when it was scaled down."""

    gap_seconds: float
    pods: WatchHistory
    statefulset: WatchHistory


@pytest.fixture(scope="module")
def scaled(kinds: dict[str, ObservedApp], session: Session) -> Iterator[dict[str, Scaled]]:
    """Scale all of them from three pods to two; two of them get another template meanwhile."""
    with ExitStack() as stack:

        def follow(one: ObservedApp, what: str) -> WatchHistory:
            selection = f"--selector=streamapp.dev/app={one.app.name}"
            return stack.enter_context(watch_history(session, one.app.namespace, what, selection))

        pods = {kind: follow(one, "pods") for kind, one in kinds.items()}
        sets = {kind: follow(one, "statefulsets") for kind, one in kinds.items()}
        began = {kind: one.clock() for kind, one in kinds.items()}
        in_hold, in_step = kinds["threads"], kinds["exactly-once"]
        # No copy's word counts: held until the template changes too, however well the copies do.
        in_hold.patch({"learners": {"assignor": "Unknown"}})
        in_hold.app.scale(2)
        wait_until("held", lambda: "hold" in in_hold.record(), 60)
        in_hold.patch(
            {
                "learners": {"assignor": "HighAvailability"},
                "template": {"metadata": {"annotations": {"generation": ROLLED}}},
            }
        )
        for one in kinds.values():
            if one is not in_hold:
                one.app.scale(2)
        # A step is short: who asks for the present state may miss it.
        opened = sets["exactly-once"]
        wait_until("a step is open", lambda: any("step" in record_of(each.object) for each in opened.changes()), 180)
        in_step.change_template(generation=ROLLED)
        for one in kinds.values():
            one.app.wait_until_converged(2)
        wait_until_rolled_out(in_hold)
        wait_until_rolled_out(in_step)
        time.sleep(2)
        yield {kind: Scaled(one.worst_gap_since(began[kind]), pods[kind], sets[kind]) for kind, one in kinds.items()}


def test_two_threads_a_pod_and_a_partition_without_input(
    kinds: dict[str, ObservedApp], scaled: dict[str, Scaled]
) -> None:
    one = kinds["threads"]
    require_one_covered_step(one, scaled["threads"])
    assert [member["ordinal"] for member in one.app.status()["members"]] == [0, 1]
    inputs = {row.partition: row.inputs for row in one.gaps(one.clock() - 10_000, one.clock()).partitions}
    assert [number for number, count in inputs.items() if count == 0] == [QUIET_PARTITION]


def test_exactly_once(kinds: dict[str, ObservedApp], scaled: dict[str, Scaled]) -> None:
    require_one_covered_step(kinds["exactly-once"], scaled["exactly-once"])


def test_static_members_are_put_out_when_their_pod_is_gone_for_good(
    kinds: dict[str, ObservedApp], scaled: dict[str, Scaled], bootstrap: str
) -> None:
    require_one_covered_step(kinds["static-table"], scaled["static-table"])
    assert instances(bootstrap, kinds["static-table"]) == {"counter-0-1", "counter-1-1"}


def test_several_stores_and_two_subtopologies(kinds: dict[str, ObservedApp], scaled: dict[str, Scaled]) -> None:
    require_one_covered_step(kinds["stores"], scaled["stores"])
    assert kinds["stores"].app.status()["convergence"]["tasks"] == 2 * PARTITIONS


def test_a_source_topic_that_serves_as_changelog(kinds: dict[str, ObservedApp], scaled: dict[str, Scaled]) -> None:
    require_one_covered_step(kinds["static-table"], scaled["static-table"])


@pytest.mark.parametrize("kind", ["static-table", "stores"])
def test_the_resource_tells_of_no_longer_gap_than_users_had(
    kinds: dict[str, ObservedApp], scaled: dict[str, Scaled], kind: str
) -> None:
    (step,) = kinds[kind].app.status()["lastSteps"]
    longest, error = (parse_duration(step[name]).total_seconds() for name in ("downtimeMax", "downtimeUncertainty"))
    assert longest - error <= scaled[kind].gap_seconds + METER_SECONDS


def test_a_template_that_changes_in_mid_hold_is_rolled_out_first_one_pod_at_a_time(scaled: dict[str, Scaled]) -> None:
    history = scaled["threads"].pods
    assert history.pods_down(among=2) in ([{"counter-1"}, {"counter-0"}], [{"counter-0"}, {"counter-1"}])
    deleted = [change.name for change in history.changes() if change.kind == "DELETED"]
    assert (sorted(deleted), deleted[-1]) == (["counter-0", "counter-1", "counter-2"], "counter-2")


def test_a_template_that_changes_while_a_step_is_open_waits_for_its_end(scaled: dict[str, Scaled]) -> None:
    written = {ROLLED: False, "": False}
    for change in scaled["exactly-once"].statefulset.changes():
        template = change.object["spec"]["template"]["metadata"].get("annotations", {}).get("generation", "")
        written[template] = True
        if "step" in record_of(change.object):
            assert template == ""
    assert written == {ROLLED: True, "": True}
    assert all(len(down) == 1 for down in scaled["exactly-once"].pods.pods_down(among=2))


@pytest.mark.usefixtures("scaled")
def test_static_members_are_restarted_one_at_a_time_and_keep_their_place(
    kinds: dict[str, ObservedApp],
    session: Session,
    bootstrap: str,
) -> None:
    one = kinds["static-table"]
    members, began = instances(bootstrap, one), one.clock()
    with watch_history(session, one.app.namespace, "pods", f"--selector=streamapp.dev/app={one.app.name}") as history:
        one.change_template(generation=ROLLED)
        wait_until_rolled_out(one)
        assert history.pods_down(among=2) in ([{"counter-1"}, {"counter-0"}], [{"counter-0"}, {"counter-1"}])
    assert instances(bootstrap, one) == members
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


@pytest.fixture(scope="module")
def plain(kubectl: Kubectl, bootstrap: str) -> Iterator[DemoApplication]:
    """Deploy the application as a plain StatefulSet with two pods under load, to compare with."""
    application = DemoApplication(unique_name("plain"), STANDBY, 10_000, 100, "t-kinds-plain", cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    demo_application.preload(kubectl, application)
    demo_application.start(kubectl, application, 2)
    demo_application.start_load(kubectl, application)
    yield application
    remove_all(kubectl, bootstrap, [application])


@pytest.fixture(scope="module")
def gaps_of_ends(
    kinds: dict[str, ObservedApp],
    scaled: dict[str, Scaled],  # noqa: ARG001 (they have two pods by then)
    plain: DemoApplication,
    kubectl: Kubectl,
    bootstrap: str,
) -> dict[str, float]:
    """End a pod's container in four ways at the same time, and measure how long users waited."""
    alone = GroupReader(bootstrap, kubectl, plain)
    time.sleep(SEEN_FOR_A_WHILE_SECONDS)
    began = {kind: one.clock() for kind, one in kinds.items()}
    alone_since = alone.clock_ms(PARTITIONS)
    kill_container(kinds["exactly-once"].pod(1))
    fill_memory(kubectl, kinds["threads"].pod(1))
    kinds["stores"].delete_pod(1)
    (unmanaged,) = [pod for pod in demo_application.pods(kubectl, plain) if pod["metadata"]["name"] == "counter-1"]
    kill_container(unmanaged)
    time.sleep(SESSION_TIMEOUT_SECONDS + 15)
    for one in kinds.values():
        one.app.wait_until_converged(2)
    report = gap_report(bootstrap, plain, alone_since, alone.clock_ms(PARTITIONS)).worst()
    assert report is not None
    assert report.seconds is not None
    return {"plain": report.seconds} | {kind: one.worst_gap_since(began[kind]) for kind, one in kinds.items()}


def test_a_killed_container_costs_the_session_timeout_without_the_operator(gaps_of_ends: dict[str, float]) -> None:
    assert gaps_of_ends["plain"] > 40


def test_a_killed_container_costs_seconds(gaps_of_ends: dict[str, float]) -> None:
    assert gaps_of_ends["exactly-once"] < SESSION_TIMEOUT_SECONDS


def test_a_container_without_memory_costs_seconds(
    kinds: dict[str, ObservedApp], gaps_of_ends: dict[str, float]
) -> None:
    (status,) = kinds["threads"].pod(1)["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert gaps_of_ends["threads"] < SESSION_TIMEOUT_SECONDS


def test_a_deleted_pod_costs_seconds(gaps_of_ends: dict[str, float]) -> None:
    assert gaps_of_ends["stores"] < SESSION_TIMEOUT_SECONDS


@pytest.mark.usefixtures("gaps_of_ends")
def test_where_nothing_moves_nothing_is_written(kinds: dict[str, ObservedApp], session: Session) -> None:
    for one in kinds.values():
        one.app.wait_until_converged(2)
    time.sleep(15)
    with ExitStack() as stack:
        seen = [
            stack.enter_context(watch_history(session, one.app.namespace, what))
            for one in kinds.values()
            for what in ("statefulsets", "streamapps")
        ]
        began = datetime.now(UTC)
        time.sleep(QUIET_SECONDS)
        written = writes_of_the_operator(began, {one.app.namespace for one in kinds.values()})
        assert written == [], (
            f"records and statuses: {[[_shown(each.object) for each in one.changes()] for one in seen]}"
        )


def _shown(written: Mapping[str, Any]) -> object:
    """What tells why it was written: the hold record of a StatefulSet, the status of a StreamApp."""
    return written["status"] if written["kind"] == "StreamApp" else record_of(written)


@pytest.mark.usefixtures("gaps_of_ends")
@pytest.mark.parametrize("kind", KINDS)
def test_no_record_was_lost_and_where_it_is_promised_none_was_doubled(kinds: dict[str, ObservedApp], kind: str) -> None:
    counts = kinds[kind].counts()
    assert counts.exactly_once == (kind == "exactly-once")
    assert (counts.lost, counts.undercounted, counts.verdict) == (0, 0, CountVerdict.KEPT)


def require_one_covered_step(one: ObservedApp, scaled: Scaled) -> None:
    """One pod went, for good, and nobody waited for a session timeout."""
    assert one.steps() == [(3, 2)]
    assert "forced" not in one.app.status()["lastSteps"][0]
    assert sorted(pod["metadata"]["name"] for pod in one.app.pods()) == ["counter-0", "counter-1"]
    assert scaled.gap_seconds < SESSION_TIMEOUT_SECONDS


def wait_until_rolled_out(one: ObservedApp) -> None:
    """Wait until every pod has the new template, and nothing moves any more."""

    def rolled_out() -> bool:
        templates = {pod["metadata"].get("annotations", {}).get("generation") for pod in one.app.pods()}
        return templates == {ROLLED} and one.app.condition("Converged").get("status") == "True"

    wait_until(f"{one.app.namespace}: rolled out", rolled_out, 180, interval_seconds=1)


def instances(bootstrap: str, one: ObservedApp) -> set[str]:
    """The instance ids in the group."""
    group = one.app.application.application_id
    admin = AdminClient({"bootstrap.servers": bootstrap})
    members = admin.describe_consumer_groups([group])[group].result(20).members
    return {str(member.group_instance_id) for member in members}
