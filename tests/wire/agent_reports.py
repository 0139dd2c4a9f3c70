"""Reports of agents for tests: one with everything in it, and any that the schema allows."""

import json
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streamapp.core.facts.agent_reports import AsideKind
from streamapp.core.facts.ids import Ordinal
from streamapp.wire.agent_fields import What
from streamapp.wire.agent_report import Expected
from tests.streamapps import changed

Json = dict[str, Any]

PROTOCOL = Path(__file__).resolve().parents[2] / "agent" / "protocol"
_REPORT: Json = json.loads((PROTOCOL / "report.schema.json").read_text())
REPORT_SCHEMA = Draft202012Validator(_REPORT)
ANNOUNCEMENT_SCHEMA = Draft202012Validator(json.loads((PROTOCOL / "announcement.schema.json").read_text()))
HEARTBEAT_SCHEMA = Draft202012Validator(json.loads((PROTOCOL / "heartbeat.schema.json").read_text()))

ASKED_AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
POD_UID = "11111111-2222-4333-8444-555555555555"
PROCESS = "00000001-0000-4000-8123-0123456789ab"
EXPECTED = Expected(ordinal=Ordinal(1), pod_uid=POD_UID, application_id="wordcount", asked_at=ASKED_AT)

FULL: Json = {
    "version": 1,
    "agent": {
        "version": "0.1.0",
        "java": "17.0.13",
        "podUid": POD_UID,
        "incarnation": "i-1",
        "sequence": 7,
        "ageMillis": 250,
    },
    "announcement": {
        "state": "set",
        "epoch": {"lease": 2, "counter": 1790000000},
        "processIds": [PROCESS],
        "rebalance": "Eager",
        "expiresInMillis": 12000,
    },
    "heartbeat": {"intervalMillis": 300, "capMillis": 300, "expiresInMillis": 41000},
    "memory": {"usedBytes": 400_000_000, "limitBytes": 512_000_000, "heapBytes": 256_000_000},
    "instances": [
        {
            "applicationId": "wordcount",
            "processId": PROCESS,
            "clientId": "wordcount-1",
            "kafkaVersion": "4.2.1",
            "clientState": "RUNNING",
            "threads": [{"name": "wordcount-1-StreamThread-1", "state": "RUNNING"}],
            "protocol": "classic",
            "assignor": {
                "class": "dev.streamapp.assignor.LearnerTaskAssignor",
                "isOurs": True,
                "lastRound": {
                    "ageMillis": 4000,
                    "announcement": "set",
                    "epoch": {"lease": 2, "counter": 1790000000},
                    "moved": 3,
                    "learning": 2,
                    "ready": 1,
                    "followUpMillis": 1000,
                    "followUpFor": "learning",
                    "warmInMillis": 6500,
                    "fellBack": "",
                },
            },
            "acceptableRecoveryLag": 10000,
            "standbyReplicas": 0,
            "heartbeatMillis": 500,
            "leavesOnClose": True,
            "sessionTimeoutMillis": 45000,
            "isStatic": False,
            "stateDirectory": "/var/lib/streams",
            "cleanedTasks": 3,
            "defaultsGiven": [{"name": "task.assignor.class", "value": "ours"}],
            "stateBytes": 200_000_000,
            "freeBytes": 1_000_000_000,
            "fileSystem": "9f6f0a5e-boot:64769",
            "taskTimes": [
                {"id": "0_1", "startedAgoMillis": 60000},
                {"id": "0_2", "startedAgoMillis": 90000, "stoppedAgoMillis": 1500},
            ],
            "topology": "Topologies:\n   Sub-topology: 0\n",
            "tasks": [
                {"id": "0_1", "role": "active", "state": "running", "stateBytes": 190_000_000, "stores": []},
                {
                    "id": "0_2",
                    "role": "standby",
                    "stores": [{"store": "counts", "partition": 2, "position": 4711}],
                },
            ],
            "asides": [{"what": "heartbeat", "why": "it is set", "kind": "SwitchedOff"}],
        }
    ],
    "asides": [],
}


def body(report: Mapping[str, Any]) -> bytes:
    """As it comes over HTTP."""
    return json.dumps(report).encode()


def with_changes(changes: Mapping[str, Any]) -> Json:
    """The full one with fields set by their path; `tests.streamapps.ABSENT` takes one away."""
    return changed(deepcopy(FULL), changes)


COUNTS = st.integers(0, 2**63 - 1)
MILLIS = st.integers(0, 10**9)
TEXTS = st.text(max_size=8)
EPOCHS = st.fixed_dictionaries({"lease": COUNTS, "counter": COUNTS})
PROCESS_IDS = st.uuids().map(str)


def some(required: Json, optional: Json) -> st.SearchStrategy[Json]:
    """An object with the fields it must have, some it may have, and one of a newer agent."""
    return st.fixed_dictionaries(required, optional={**optional, "newField": st.none() | TEXTS})


ASIDES = some(
    {
        "what": st.sampled_from([one.value for one in What]) | TEXTS,
        "why": TEXTS,
    },
    {"kind": st.sampled_from([one.value for one in AsideKind]) | TEXTS},
)
ROUNDS = some(
    {
        "ageMillis": MILLIS,
        "announcement": st.sampled_from(["unknown", "empty", "set"]),
        "moved": COUNTS,
        "learning": COUNTS,
        "fellBack": TEXTS,
    },
    {
        "epoch": EPOCHS,
        "ready": COUNTS,
        "followUpMillis": COUNTS,
        "followUpFor": st.sampled_from(["learning", "unknown", "expiry"]),
        "warmInMillis": MILLIS,
    },
)


@st.composite
def tasks(draw: st.DrawFn) -> list[Json]:
    """Tasks, each once, with stores of their own partition."""
    found = []
    for subtopology, partition in draw(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=5)):
        stores = draw(st.sets(st.sampled_from(["a", "b", "c"])))
        places = [{"store": name, "partition": partition, "position": draw(COUNTS)} for name in sorted(stores)]
        required = {"id": st.just(f"{subtopology}_{partition}"), "role": st.sampled_from(["active", "standby"])}
        optional = {
            "state": st.sampled_from(["running", "restoring"]),
            "stateBytes": COUNTS,
            "stores": st.just(places),
        }
        found.append(draw(some(required, optional)))
    return found


def instances(application_ids: st.SearchStrategy[str]) -> st.SearchStrategy[Json]:
    """One instance."""
    return some(
        {
            "applicationId": application_ids,
            "clientState": st.sampled_from(["RUNNING", "REBALANCING"]) | TEXTS,
            "asides": st.lists(ASIDES, max_size=2),
        },
        {
            "processId": PROCESS_IDS,
            "clientId": TEXTS,
            "kafkaVersion": TEXTS,
            "threads": st.lists(some({"name": TEXTS, "state": TEXTS}, {}), max_size=2),
            "protocol": st.sampled_from(["classic", "streams"]),
            "assignor": some({"class": TEXTS, "isOurs": st.booleans()}, {"lastRound": ROUNDS}),
            "acceptableRecoveryLag": COUNTS,
            "standbyReplicas": COUNTS,
            "heartbeatMillis": st.integers(1, 10**6),
            "sessionTimeoutMillis": st.integers(1, 2**31 - 1),
            "isStatic": st.booleans(),
            "stateDirectory": TEXTS,
            "cleanedTasks": st.integers(1, 10**6),
            "leavesOnClose": st.booleans(),
            "defaultsGiven": st.lists(some({"name": TEXTS, "value": TEXTS}, {}), max_size=2),
            "stateBytes": COUNTS,
            "freeBytes": COUNTS,
            "fileSystem": TEXTS,
            "taskTimes": st.lists(
                some({"id": st.just("0_1")}, {"startedAgoMillis": MILLIS, "stoppedAgoMillis": MILLIS}), max_size=2
            ),
            "topology": TEXTS,
            "tasks": tasks(),
        },
    )


REPORTS = some(
    {
        "version": st.just(1),
        "agent": some(
            {
                "version": TEXTS,
                "java": TEXTS,
                "incarnation": TEXTS,
                "sequence": st.integers(1, 2**63 - 1),
                "ageMillis": MILLIS,
                "podUid": st.just(POD_UID),
            },
            {},
        ),
        "announcement": some(
            {"state": st.sampled_from(["unknown", "empty", "set"])},
            {
                "epoch": EPOCHS,
                "processIds": st.lists(PROCESS_IDS, max_size=3),
                "rebalance": st.sampled_from(["Conservative", "Eager"]),
                "expiresInMillis": MILLIS,
            },
        ),
        "instances": st.tuples(
            instances(st.just("wordcount")), st.lists(instances(st.sampled_from(["other", ""])), max_size=1)
        ).map(lambda found: [found[0], *found[1]]),
        "asides": st.lists(ASIDES, max_size=2),
    },
    {},
)
"""Any that the schema allows, of the pod and the application that is expected."""
