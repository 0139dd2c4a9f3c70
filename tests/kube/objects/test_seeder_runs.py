"""What a pod's status says of the last use of its state, while the application waits."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamapp.core.facts.workload import LastUse, StateSeen
from streamapp.kube.objects import from_json

Json = dict[str, Any]
ENDED = "2026-11-21T10:00:00Z"
BEFORE, AFTER = "2026-11-21T09:00:00Z", "2026-11-21T10:00:01Z"
WAITS: Json = {"state": {"waiting": {"reason": "ImagePullBackOff"}}, "restartCount": 0}
REPORT = '{"processId":"00000000-0000-4000-8123-0123456789ab","seeded":false,"idleSeconds":3600}'


def seeder(message: str = REPORT, **state: Any) -> Json:
    return {"terminated": {"exitCode": 0, "finishedAt": ENDED, "message": message, **state}}


def read(application: Json | None, of_seeder: Json | None, container: str = "app") -> LastUse | None:
    status: Json = {}
    if of_seeder is not None:
        status["initContainerStatuses"] = [
            {"name": "mine", "state": {"terminated": {"exitCode": 0, "finishedAt": AFTER}}},
            {"name": "streamapp-seed", "state": of_seeder},
        ]
    if application is not None:
        status["containerStatuses"] = [
            {"name": "sidecar", "state": {"running": {"startedAt": AFTER}}, "restartCount": 0},
            {"name": "app", **application},
        ]
    containers = [{"name": "sidecar"}, {"name": "app"}]
    pod = {"metadata": {"name": "counter-0", "uid": "u"}, "spec": {"containers": containers}, "status": status}
    (found,) = from_json.pods([pod], "counter", None, container)
    return found.last_use


def run(idle: timedelta | StateSeen) -> LastUse:
    return LastUse(ended_at=datetime(2026, 11, 21, 10, tzinfo=UTC), idle=idle)


RAN: Json = {"terminated": {"startedAt": AFTER, "finishedAt": "2026-11-21T10:20:00Z"}}
OF_ITS_OWN = LastUse(ended_at=datetime(2026, 11, 21, 10, 20, tzinfo=UTC), idle=timedelta(0))


@pytest.mark.parametrize(
    ("application", "of_seeder", "expected"),
    [
        pytest.param(WAITS, seeder(), run(timedelta(hours=1)), id="the image cannot be pulled"),
        pytest.param(None, seeder(), run(timedelta(hours=1)), id="the kubelet says nothing of the container yet"),
        pytest.param(
            {**WAITS, "lastState": {"terminated": {"startedAt": BEFORE, "finishedAt": BEFORE}}, "restartCount": 1},
            seeder(),
            run(timedelta(hours=1)),
            id="it ran before its node restarted, and the seeder after that",
        ),
        pytest.param(WAITS, seeder('{"idleSeconds":null}'), run(StateSeen.NONE), id="there is no state"),
        pytest.param(WAITS, seeder('{"seeded":true}'), run(StateSeen.UNKNOWN), id="an older seeder"),
        pytest.param(WAITS, seeder('{"removed":["0_1"'), run(StateSeen.UNKNOWN), id="half a report"),
        pytest.param(WAITS, seeder(""), run(StateSeen.UNKNOWN), id="no report"),
        pytest.param(WAITS, seeder('{"idleSeconds":"long"}'), run(StateSeen.UNKNOWN), id="no number"),
        pytest.param(WAITS, seeder('{"idleSeconds":true}'), run(StateSeen.UNKNOWN), id="a word that looks like one"),
        pytest.param(WAITS, seeder('{"idleSeconds":-1}'), run(StateSeen.UNKNOWN), id="less than no time"),
        pytest.param(WAITS, seeder('{"idleSeconds":1%s}' % ("0" * 30)), run(StateSeen.UNKNOWN), id="ages of ages"),
        pytest.param({"state": {"running": {"startedAt": AFTER}}}, seeder(), None, id="it runs"),
        pytest.param({"state": {"running": {"startedAt": ENDED}}}, seeder(), None, id="it started in the same second"),
        pytest.param({"state": RAN}, seeder(), OF_ITS_OWN, id="it ran and ended"),
        pytest.param({**WAITS, "lastState": RAN}, seeder(), OF_ITS_OWN, id="it ran, and cannot start again"),
        pytest.param(
            {"state": {"terminated": {"startedAt": AFTER, "finishedAt": AFTER}}, "lastState": RAN},
            seeder(),
            OF_ITS_OWN,
            id="of two runs the one that ended last counts",
        ),
        pytest.param(
            {"state": {"running": {"startedAt": AFTER}}, "lastState": RAN}, seeder(), None, id="it runs again"
        ),
        pytest.param(
            {**WAITS, "lastState": {"terminated": {"startedAt": AFTER}}}, seeder(), None, id="nobody knows its end"
        ),
        pytest.param(
            {**WAITS, "lastState": {"terminated": {"exitCode": 137, "startedAt": None}}, "restartCount": 1},
            seeder(),
            None,
            id="it ran at a time that the kubelet has lost",
        ),
        pytest.param(WAITS, seeder(exitCode=1), None, id="the seeder failed"),
        pytest.param(WAITS, {"running": {"startedAt": BEFORE}}, None, id="the seeder runs"),
        pytest.param(WAITS, None, None, id="there is none"),
    ],
)
def test_the_state_of_a_pod_that_waits_was_last_used_by_its_seeder_or_its_application(
    application: Json | None, of_seeder: Json | None, expected: LastUse | None
) -> None:
    assert read(application, of_seeder) == expected


def test_a_pod_whose_application_is_not_known_does_not_wait() -> None:
    assert read(WAITS, seeder(), container="renamed") is None
