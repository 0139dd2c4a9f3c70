"""What a pod's status says of a container that does not run, and of a pod without a node."""

from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.facts.workload import PodFault
from streamapp.kube.objects import from_json

Json = dict[str, Any]
CRASHED: Json = {
    "terminated": {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": "2026-11-21T09:59:57Z",
        "finishedAt": "2026-11-21T10:00:00Z",
        "message": "at Main\n\x1b[31mboom\n",
    }
}
KILLED: Json = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-21T10:00:00Z"}}
BACK_OFF: Json = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}}
NO_IMAGE: Json = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image your/app"}}
RUNS: Json = {"running": {"startedAt": "2026-11-21T10:01:00Z"}}
UNSCHEDULABLE: Json = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/2 nodes are available: 2 Insufficient memory.",
}


def fault(
    state: Json | None = None,
    last: Json | None = None,
    restarts: int = 0,
    *,
    sidecar: Json = RUNS,
    init: Json | None = None,
    conditions: tuple[Json, ...] = (),
) -> PodFault | None:
    containers: list[Json] = [{"name": "sidecar", "state": sidecar, "restartCount": 3}]
    if state is not None:
        containers.append({"name": "app", "state": state, "lastState": last or {}, "restartCount": restarts})
    pod = {
        "metadata": {"name": "counter-0", "uid": "u"},
        "spec": {"containers": [{"name": "sidecar"}, {"name": "app"}]},
        "status": {
            "initContainerStatuses": []
            if init is None
            else [{"name": "streamapp-seed", "state": init, "restartCount": 2}],
            "containerStatuses": containers,
            "conditions": list(conditions),
        },
    }
    (found,) = from_json.pods([pod], "counter", None, "app")
    return found.fault


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(fault(RUNS), None, id="it runs"),
        pytest.param(fault({"waiting": {"reason": "ContainerCreating"}}), None, id="it starts for the first time"),
        pytest.param(fault(RUNS, {"terminated": {"exitCode": 0}}, 1), None, id="it ended by itself and runs again"),
        pytest.param(
            fault(BACK_OFF, CRASHED, 7),
            PodFault(
                reason="CrashLoopBackOff",
                container="app",
                exit_code=1,
                restarts=7,
                ran_for=timedelta(seconds=3),
                last_words="at Main [31mboom",
            ),
            id="a crash loop",
        ),
        pytest.param(
            fault(RUNS, KILLED, 2),
            PodFault(reason="OOMKilled", container="app", exit_code=137, restarts=2),
            id="it runs again after it was killed",
        ),
        pytest.param(
            fault(BACK_OFF, KILLED, 2),
            PodFault(reason="OOMKilled", container="app", exit_code=137, restarts=2),
            id="the cause tells more than the wait",
        ),
        pytest.param(
            fault(KILLED),
            PodFault(reason="OOMKilled", container="app", exit_code=137),
            id="it has just ended",
        ),
        pytest.param(
            fault(NO_IMAGE),
            PodFault(reason="ImagePullBackOff", container="app", last_words="Back-off pulling image your/app"),
            id="the image cannot be pulled",
        ),
        pytest.param(
            fault({"waiting": {"reason": "PodInitializing"}}, init=CRASHED),
            PodFault(
                reason="Error",
                container="streamapp-seed",
                exit_code=1,
                restarts=2,
                ran_for=timedelta(seconds=3),
                last_words="at Main [31mboom",
            ),
            id="an init container fails",
        ),
        pytest.param(
            fault(RUNS, sidecar=NO_IMAGE),
            PodFault(
                reason="ImagePullBackOff",
                container="sidecar",
                restarts=3,
                last_words="Back-off pulling image your/app",
            ),
            id="a sidecar does not start",
        ),
        pytest.param(
            fault(conditions=(UNSCHEDULABLE,)),
            PodFault(reason="Unschedulable", last_words="0/2 nodes are available: 2 Insufficient memory."),
            id="no node has room",
        ),
    ],
)
def test_the_cause_is_read_from_the_status(found: PodFault | None, expected: PodFault | None) -> None:
    assert found == expected


def test_of_long_last_words_the_end_is_kept() -> None:
    found = fault({"terminated": {"exitCode": 1, "message": "x" * 3000 + " OutOfMemoryError"}})
    assert found is not None
    assert len(found.last_words) == 200
    assert found.last_words.endswith("xx OutOfMemoryError")


FULL_DISK = """t org.apache.kafka.streams.processor.internals.StreamThread.run(StreamThread.java:850)
org.apache.kafka.streams.errors.ProcessorStateException: Error opening store counts at /state/0_1/rocksdb/counts
\tat org.apache.kafka.streams.state.internals.RocksDBStore.openRocksDB(RocksDBStore.java:330)
Caused by: org.rocksdb.RocksDBException: No space left on device: While open a file for appending: /state/0_1/LOG
\tat org.rocksdb.RocksDB.open(Native Method)
\t... 17 more
2026-11-26T04:48:45.309Z INFO Counter - PENDING_SHUTDOWN
2026-11-26T04:48:45.948Z INFO Counter - closed in 639 ms, leave on close: false
2026-11-26T04:48:45.949Z INFO Counter - NOT_RUNNING
"""


@pytest.mark.parametrize(
    ("message", "words"),
    [
        pytest.param(
            FULL_DISK,
            "org.rocksdb.RocksDBException: No space left on device: While open a file for appending: /state/0_1/LOG",
            id="the innermost cause",
        ),
        pytest.param(
            FULL_DISK + 'Exception in thread "main" java.lang.IllegalStateException: closed\n\tat Counter.main',
            "java.lang.IllegalStateException: closed",
            id="the last of two traces",
        ),
        pytest.param(
            FULL_DISK + "Terminating due to java.lang.OutOfMemoryError: Java heap space\n",
            "java.lang.OutOfMemoryError: Java heap space",
            id="what the JVM ended itself of",
        ),
        pytest.param(
            f"java.lang.OutOfMemoryError: {'x' * 300}\n\tat Counter.main",
            f"java.lang.OutOfMemoryError: {'x' * 171}…",
            id="a long cause is cut at its end",
        ),
        pytest.param(
            "x" * 300 + " an Error: no trace", "…" + "x" * 180 + " an Error: no trace", id="a word is no trace"
        ),
    ],
)
def test_of_a_long_log_the_cause_is_kept_and_not_how_the_application_closed(message: str, words: str) -> None:
    found = fault({"terminated": {"exitCode": 1, "message": message}})
    assert found is not None
    assert found.last_words == words
