"""Reports of agents: what is read, what is refused and how, and that parser and schema say the same."""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.core.facts.agent_reports import (
    AgentReport,
    AnnouncementAck,
    AnnouncementState,
    AsideKind,
    AssignorInactive,
    AssignorRun,
    ClientSettings,
    ContainerMemory,
    HeartbeatCap,
    LocalTask,
    Rebalance,
    TaskState,
    TaskTimes,
)
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.wire.agent_report import MOST_BYTES, NotOurReportError, ReadReport, read_report
from streamapp.wire.errors import UndecodableError
from tests.streamapps import ABSENT
from tests.wire.agent_reports import ASKED_AT, EXPECTED, FULL, POD_UID, PROCESS, REPORT_SCHEMA, REPORTS, body
from tests.wire.agent_reports import with_changes as changed

Json = dict[str, Any]
EPOCH = Epoch(lease=2, counter=1790000000)


EVERYTHING = ReadReport(
    AgentReport(
        ordinal=Ordinal(1),
        pod_uid=POD_UID,
        incarnation="i-1",
        sequence=7,
        as_of=ASKED_AT - timedelta(milliseconds=250),
        process_id=ProcessId.parse(PROCESS),
        tasks=(
            LocalTask(id=TaskId(0, 1), is_active=True, state=TaskState.RUNNING, state_bytes=190_000_000),
            LocalTask(id=TaskId(0, 2), is_active=False, state=None, positions={"counts": 4711}),
        ),
        heard=AnnouncementAck(
            state=AnnouncementState.SET,
            epoch=EPOCH,
            process_ids=frozenset({ProcessId.parse(PROCESS)}),
            rebalance=Rebalance.EAGER,
            expires_in=timedelta(seconds=12),
        ),
        is_ours=True,
        recovery_lag=10_000,
        standby_replicas=0,
        round=AssignorRun(
            made_at=ASKED_AT - timedelta(seconds=4),
            state=AnnouncementState.SET,
            epoch=EPOCH,
            moved=3,
            learning=2,
            follow_up_is_watch=False,
            warm_at=ASKED_AT + timedelta(seconds=2.5),
        ),
        client_state="RUNNING",
        settings=ClientSettings(
            heartbeat=timedelta(milliseconds=500),
            session_timeout=timedelta(seconds=45),
            is_static=False,
            leaves_on_close=True,
            state_directory="/var/lib/streams",
            cleaned_tasks=3,
            kafka_version="4.2.1",
        ),
        state_bytes=200_000_000,
        free_bytes=1_000_000_000,
        memory=ContainerMemory(used=400_000_000, heap=256_000_000, limit=512_000_000),
        heartbeat_cap=HeartbeatCap(interval=timedelta(milliseconds=300), expires_in=timedelta(seconds=41)),
        file_system="9f6f0a5e-boot:64769",
        task_times=(
            TaskTimes(TaskId(0, 1), ASKED_AT - timedelta(minutes=1), None),
            TaskTimes(TaskId(0, 2), ASKED_AT - timedelta(seconds=90), ASKED_AT - timedelta(seconds=1.5)),
        ),
    ),
    "Topologies:\n   Sub-topology: 0\n",
)


def test_everything_that_a_decision_needs_is_read() -> None:
    assert read_report(body(FULL), EXPECTED) == EVERYTHING


def test_what_is_left_out_is_not_known() -> None:
    least = changed(
        {
            "announcement": {"state": "unknown"},
            "heartbeat": ABSENT,
            "memory": ABSENT,
            "instances.0": {"applicationId": "wordcount", "clientState": "CREATED", "asides": []},
        }
    )
    found = read_report(body(least), EXPECTED)
    assert found == ReadReport(
        AgentReport(
            ordinal=Ordinal(1),
            pod_uid=POD_UID,
            incarnation="i-1",
            sequence=7,
            as_of=ASKED_AT - timedelta(milliseconds=250),
            process_id=None,
            tasks=None,
            heard=AnnouncementAck(state=AnnouncementState.UNKNOWN),
            client_state="CREATED",
        ),
        None,
    )


@pytest.mark.parametrize("place", ["instances.0.asides", "asides"])
def test_an_aside_of_the_assignor_says_that_it_is_not_at_work_whatever_else_is_said(place: str) -> None:
    aside = {"what": "assignor", "why": "3.7.1 has no such interface", "kind": "OlderStreams"}
    report = read_report(body(changed({place: [aside]})), EXPECTED).report
    assert (report.is_ours, report.aside) == (
        False,
        AssignorInactive(AsideKind.OLDER_STREAMS, "3.7.1 has no such interface"),
    )


NEWER: dict[str, Any] = {
    "instances.0.clientState": "PAUSED",
    "instances.0.protocol": "later",
    "instances.0.asides": [{"what": "probe", "why": "it is new"}],
    "instances.0.assignor.lastRound.followUpFor": "balance",
    "instances.0.assignor.lastRound.announcement": "later",
}


def test_words_that_a_newer_agent_or_kafka_has_do_not_make_it_silent() -> None:
    report = read_report(body(changed(NEWER)), EXPECTED).report
    assert (report.client_state, report.is_ours, report.aside) == ("PAUSED", True, None)
    assert report.round is not None
    assert (report.round.state, report.round.follow_up_is_watch) == (AnnouncementState.UNKNOWN, False)


def test_an_unknown_state_of_a_task_or_of_the_announcement_is_not_known() -> None:
    later = {"announcement": {"state": "later"}, "instances.0.tasks.0.state": "migrating"}
    report = read_report(body(changed(later)), EXPECTED).report
    assert report.heard.state is AnnouncementState.UNKNOWN
    assert report.tasks is not None
    assert report.tasks[0].state is None


def test_an_unknown_kind_of_aside_is_a_failure() -> None:
    aside = {"what": "assignor", "why": "oops", "kind": "NewerStreams"}
    assert read_report(body(changed({"asides": [aside]})), EXPECTED).report.aside == AssignorInactive(
        AsideKind.FAILED, "oops"
    )


def test_an_aside_without_a_kind_is_a_failure() -> None:
    report = read_report(body(changed({"asides": [{"what": "assignor", "why": "oops"}]})), EXPECTED).report
    assert report.aside == AssignorInactive(AsideKind.FAILED, "oops")


@pytest.mark.parametrize(("reason", "is_watch"), [("expiry", True), ("learning", False), ("unknown", False)])
def test_a_follow_up_that_only_watches_is_told_apart(reason: str, *, is_watch: bool) -> None:
    report = read_report(body(changed({"instances.0.assignor.lastRound.followUpFor": reason})), EXPECTED).report
    assert report.round is not None
    assert report.round.follow_up_is_watch is is_watch


TASK = "instances.0.tasks.1"


@pytest.mark.parametrize(
    ("changes", "where", "why"),
    [
        ({"version": 2}, "version", "Input should be 1"),
        ({"agent": ABSENT}, "agent", "Field required"),
        ({"agent.sequence": 0}, "agent.sequence", "Input should be greater than or equal to 1"),
        ({"agent.sequence": "7"}, "agent.sequence", "Input should be a valid integer"),
        ({"agent.ageMillis": -1}, "agent.ageMillis", "Input should be greater than or equal to 0"),
        ({"agent.ageMillis": True}, "agent.ageMillis", "Input should be a valid integer"),
        ({"agent.ageMillis": 10**12}, "agent.ageMillis", "Input should be less than or equal to 31622400000"),
        ({"instances.0.standbyReplicas": None}, "instances[0].standbyReplicas", "Input should be a valid integer"),
        ({"instances.0.tasks": None}, "instances[0].tasks", "Input should be a valid array"),
        (
            {"announcement.epoch": None},
            "announcement.epoch",
            "Input should be an object",
        ),
        ({f"{TASK}.id": "named__0_1"}, "instances[0].tasks[1].id", "'named__0_1' is no task id of the form 0_3"),
        ({f"{TASK}.id": "0_1"}, "instances[0].tasks[1].stores[0].partition", "it is 2, and task 0_1 has 1"),
        (
            {f"{TASK}.id": "0_1", f"{TASK}.stores": []},
            "instances[0].tasks",
            "task 0_1 is there twice, so that it is not known which of the two is now",
        ),
        (
            {f"{TASK}.stores": 2 * [FULL["instances"][0]["tasks"][1]["stores"][0]]},
            "instances[0].tasks[1].stores[1].store",
            "store counts is there twice",
        ),
        (
            {f"{TASK}.stores.0.position": -1},
            "instances[0].tasks[1].stores[0].position",
            "Input should be greater than or equal to 0",
        ),
        (
            {f"{TASK}.stores.0.position": 2**63},
            "instances[0].tasks[1].stores[0].position",
            f"Input should be less than or equal to {2**63 - 1}",
        ),
        ({"instances.0.processId": "p-1"}, "instances[0].processId", "'p-1' is no process ID"),
        ({"announcement.processIds": ["{0}"]}, "announcement.processIds[0]", "'{0}' is no process ID"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(changes: Json, where: str, why: str) -> None:
    with pytest.raises(UndecodableError) as raised:
        read_report(body(changed(changes)), EXPECTED)
    assert raised.value == UndecodableError("agent's report", where, 1, why)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "Invalid JSON: EOF while parsing a value at line 1 column 0"),
        (b"<html>", "Invalid JSON: expected value at line 1 column 1"),
        (b"[]", "Input should be an object"),
        (b"[" * 100_000, "Invalid JSON: recursion limit exceeded at line 1 column 202"),
        (b" " * (MOST_BYTES + 1), f"it has {MOST_BYTES + 1} bytes, and at most {MOST_BYTES} are read"),
    ],
)
def test_what_is_no_report_at_all_is_named_too(sent: bytes, why: str) -> None:
    with pytest.raises(UndecodableError) as raised:
        read_report(sent, EXPECTED)
    assert raised.value == UndecodableError("agent's report", "the whole", 1, why)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"agent.podUid": "another"}, f"the report is of pod another, and pod {POD_UID} was asked"),
        ({"agent.podUid": ABSENT}, f"the report does not say which pod it is of, and pod {POD_UID} was asked"),
        ({"instances": []}, "the agent knows no Kafka Streams instance of wordcount, nor of any other"),
        (
            {"instances": [], "asides": [{"what": "assignor", "why": "an unknown loader", "kind": "UnknownLoader"}]},
            "the agent knows no Kafka Streams instance of wordcount, nor of any other; the agent steps aside: an "
            "unknown loader",
        ),
        (
            {"instances.0.applicationId": "other"},
            "the agent knows no Kafka Streams instance of wordcount, only of other",
        ),
        ({"instances": 2 * FULL["instances"]}, "2 Kafka Streams instances of wordcount run in one JVM"),
    ],
)
def test_a_report_that_is_not_ours_is_refused(changes: Json, says: str) -> None:
    with pytest.raises(NotOurReportError) as raised:
        read_report(body(changed(changes)), EXPECTED)
    assert str(raised.value) == says


@given(REPORTS)
def test_whatever_the_schema_allows_is_read(report: Json) -> None:
    REPORT_SCHEMA.validate(report)
    found = read_report(body(report), EXPECTED).report
    ours = report["instances"][0]
    assert found.tasks is None or len(found.tasks) == len(ours["tasks"])
    assert (found.tasks is None) is ("tasks" not in ours)
    assert (found.recovery_lag, found.client_state) == (ours.get("acceptableRecoveryLag"), ours["clientState"])


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 10), st.just(1.5), st.text(max_size=4), st.just([]), st.just({})
)


@given(REPORTS, st.data())
def test_parser_and_schema_refuse_the_same(report: Json, data: st.DataObject) -> None:
    """One value anywhere is replaced or taken away; what the parser refuses beyond the schema is named here."""
    spoilt = deepcopy(report)
    *way, last = data.draw(st.sampled_from(list(paths(spoilt))))
    place: Any = spoilt
    for step in way:
        place = place[step]
    if data.draw(st.booleans()):
        del place[last]
    else:
        place[last] = data.draw(JUNK)
    refused = refusal_of(spoilt)
    is_beyond_the_schema = any(words in refused for words in BEYOND)
    assert REPORT_SCHEMA.is_valid(spoilt) is (not refused or is_beyond_the_schema)


BEYOND = ("is no process ID", "is no task id", "is there twice", "and task ")
"""What the parser alone refuses."""


def refusal_of(report: Json) -> str:
    """Why the parser refuses it; empty where it does not, or where it is merely another one's."""
    try:
        read_report(body(report), EXPECTED)
    except UndecodableError as error:
        return error.why
    except NotOurReportError:
        return ""
    return ""


def paths(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is something."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield (*way, key)
        yield from paths(one, (*way, key))


@given(st.binary(max_size=200) | st.recursive(JUNK, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_nothing_but_the_two_errors_comes_out(sent: Any) -> None:
    with pytest.raises((UndecodableError, NotOurReportError)):
        read_report(sent if isinstance(sent, bytes) else json.dumps(sent).encode(), EXPECTED)


@given(st.data())
def test_a_report_that_was_cut_or_damaged_is_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(body(FULL))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        found = read_report(cut, EXPECTED)
    except (UndecodableError, NotOurReportError):
        return
    assert found.report.pod_uid == POD_UID


def test_an_age_is_counted_from_the_request_of_which_it_is_the_answer() -> None:
    later = replace(EXPECTED, asked_at=ASKED_AT + timedelta(seconds=3))
    assert read_report(body(FULL), later).report.as_of == ASKED_AT + timedelta(seconds=2, milliseconds=750)
