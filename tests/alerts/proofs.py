"""For each alert, the faults that fire it: what is done to a healthy operator, and what ends it again.

Each fault is one that a cluster, a broker or a user makes. The operator is never asked to pretend: its processes are
killed, its requests are refused or kept back, its brokers go away. `test_firing` runs them, and fails for an alert that
has none here.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web

from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.seeding import seeded_process_id
from tests.alerts.cron_job import CRON_JOB, CronJob
from tests.alerts.prometheus import NOT_DECIDED_SECONDS
from tests.alerts.stage import PODS, Stage
from tests.chart.rendering import NAMESPACE as INSTALLED_IN
from tests.controller.doubles.bench import NAME
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.kube.object_store import Request

Act = Callable[["Scene"], Awaitable[None]]
OF_THE_APP = {"namespace": NAMESPACE, "name": NAME}
HOLD_RECORD = "streamapp.dev/hold-record"
PROCESS_ID = "streamapp.dev/process-id"
JOB = f"{INSTALLED_IN}/streamapp-operator"


@dataclass(slots=True)
class Scene:
    """What a fault is done to."""

    stage: Stage
    cron_job: CronJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One fault, and the alert as it must then fire."""

    fault: Act
    labels: Mapping[str, str]
    """Some of the alert's."""
    mend: Act | None = None
    """Ends the fault; the alert must then be resolved. None where a window of the rule makes that long."""
    seconds: float = 60
    """In which it must fire."""
    parts: tuple[str, ...] = ()
    """Parts of the expression that must each give something before the fault ends, where others can fire it, too."""
    pods: tuple[str, ...] = ("one",)
    """Of the operator."""
    settings: Mapping[str, Any] = field(default_factory=dict)


def _refuses(status: int, *plurals: str) -> Callable[[Request], tuple[int, str] | None]:
    return lambda request: (status, "the test refuses") if request.plural in plurals else None


async def _hold_without_progress(scene: Scene) -> None:
    """Copies that stay behind hold a scale-down, which began two hours ago by its record."""
    stage = scene.stage
    stage.group.lag = 900_000
    stage.desire(PODS - 1)
    await stage.them.until("a hold is on record", lambda: _record(stage).get("hold"))
    await stage.kill("one")
    since = _record(stage)["hold"]["since"]
    earlier = (datetime.fromisoformat(since) - timedelta(hours=2)).isoformat()
    text = stage.statefulset()["metadata"]["annotations"][HOLD_RECORD]
    stage.annotate("statefulsets", NAME, HOLD_RECORD, text.replace(f'"since":"{since}"', f'"since":"{earlier}"'))
    assert _record(stage)["hold"]["since"] == earlier
    await stage.start("one")


def _record(stage: Stage) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stage.statefulset()["metadata"].get("annotations", {}).get(HOLD_RECORD, "{}"))
    return found


async def _rival(scene: Scene) -> None:
    """Another StreamApp has the same application ID."""
    scene.stage.add("rival")


async def _no_rival(scene: Scene) -> None:
    scene.stage.server.remove("streamapps", NAMESPACE, "rival")


async def _swapped_volume(scene: Scene) -> None:
    """The volume of one ordinal was made from a copy of another's."""
    foreign = seeded_process_id(scene.stage.group.app_uid, Ordinal(7))
    scene.stage.annotate("persistentvolumeclaims", f"state-{NAME}-1", PROCESS_ID, str(foreign))


async def _own_volume(scene: Scene) -> None:
    own = seeded_process_id(scene.stage.group.app_uid, Ordinal(1))
    scene.stage.annotate("persistentvolumeclaims", f"state-{NAME}-1", PROCESS_ID, str(own))


async def _brokers_away(scene: Scene) -> None:
    await scene.stage.broker.close()


async def _brokers_back(scene: Scene) -> None:
    await scene.stage.broker.open()


async def _raise_refused(scene: Scene) -> None:
    """The API server fails each write of a StatefulSet, and the user wants more pods."""
    scene.stage.server.refuse_write = _refuses(500, "statefulsets")
    scene.stage.desire(PODS + 1)


async def _never_decided(scene: Scene) -> None:
    """A new StreamApp whose status cannot be written: it has no first success."""

    def refuse(request: Request) -> tuple[int, str] | None:
        return (500, "the test refuses") if (request.plural, request.name) == ("streamapps", "young") else None

    scene.stage.server.refuse_write = refuse
    scene.stage.add("young", applicationId="young")


async def _writes_taken(scene: Scene) -> None:
    scene.stage.server.refuse_write = lambda _: None


async def _no_right(scene: Scene) -> None:
    """The right to read pods is gone."""
    scene.stage.server.refuse = lambda received: (403, "forbidden") if received.path.endswith("/pods") else None


async def _kept_answer(scene: Scene) -> None:
    """The API server takes a write and never answers, and the deadline was set to minutes."""

    def keeps(received: web.Request) -> bool:
        return received.method != "GET" and "/statefulsets/" in received.path

    scene.stage.server.keeps = keeps
    scene.stage.desire(PODS - 1)


async def _all_killed(scene: Scene) -> None:
    for pod in scene.stage.ports:
        await scene.stage.kill(pod)


async def _all_started(scene: Scene) -> None:
    for pod in scene.stage.ports:
        await scene.stage.start(pod)


async def _nobody_can_lead(scene: Scene) -> None:
    """The leader ends, and the other one may not write the Lease any more."""
    scene.stage.server.refuse_write = _refuses(403, "leases")
    await scene.stage.kill("one")


async def _leaders_killed(scene: Scene) -> None:
    """Each leader is killed after some 50 seconds; its pod starts anew, as the kubelet has it."""
    stage = scene.stage
    for _ in range(7):
        leader = stage.server.leader()
        await stage.kill(leader)
        await stage.start(leader)
        await stage.them.until("another one leads", lambda: stage.server.leader() not in {leader, ""})  # noqa: B023
        await asyncio.sleep(45)


async def _crash_loop(scene: Scene) -> None:
    """The one that stands by ends again and again; it lives for some scrapes each time."""
    for _ in range(5):
        await scene.stage.kill("two")
        await scene.stage.start("two")
        await scene.stage.until_it_shows("two")
        await asyncio.sleep(5)


async def _record_refused(scene: Scene) -> None:
    """The record's topic takes no line of this size."""
    scene.stage.broker.takes_records = False
    scene.stage.desire(PODS + 1)


async def _record_misconfigured(scene: Scene) -> None:
    """The record's brokers are named without a port, and the operator is started anew."""
    stage = scene.stage
    await stage.kill("one")
    await stage.them.start("one", port=stage.ports["one"], record_bootstrap="brokers")
    await stage.until_it_shows("one")
    await stage.them.until("it leads", lambda: stage.them.all["one"].said("started"))
    for replicas in range(PODS + 1, PODS + 4):  # each is news for the record
        stage.desire(replicas)
        await asyncio.sleep(3)


async def _no_run_for_days(scene: Scene) -> None:
    scene.cron_job.succeeded_ago = timedelta(days=5)


async def _never_run(scene: Scene) -> None:
    scene.cron_job.created_ago, scene.cron_job.succeeded_ago = timedelta(days=5), None


async def _run_succeeds(scene: Scene) -> None:
    scene.cron_job.succeeded_ago = timedelta(minutes=1)


_AGE = "max by (namespace, name) (streamapp_group_read_age_seconds) > 120"
_CONDITION = 'max by (namespace, name) (streamapp_condition{type="KafkaReachable",status="False"}) == 1'

PROOFS: Mapping[str, tuple[Proof, ...]] = {
    "StreamAppHoldWithoutProgress": (Proof(fault=_hold_without_progress, labels=OF_THE_APP, seconds=90),),
    "StreamAppStalled": (Proof(fault=_rival, labels={"namespace": NAMESPACE, "name": "rival"}, mend=_no_rival),),
    "StreamAppIdentityUnstable": (Proof(fault=_swapped_volume, labels=OF_THE_APP, mend=_own_volume),),
    "StreamAppGroupUnread": (
        Proof(fault=_brokers_away, labels=OF_THE_APP, mend=_brokers_back, parts=(_CONDITION, _AGE)),
    ),
    "StreamAppBrokersAway": (Proof(fault=_brokers_away, labels={"job": JOB}, mend=_brokers_back),),
    "StreamAppNotDecided": (
        Proof(fault=_raise_refused, labels=OF_THE_APP, mend=_writes_taken, seconds=NOT_DECIDED_SECONDS + 30),
        Proof(
            fault=_never_decided,
            labels={"namespace": NAMESPACE, "name": "young"},
            mend=_writes_taken,
            seconds=NOT_DECIDED_SECONDS + 30,
            settings={"backoff_longest_seconds": 5.0},
        ),
    ),
    "StreamAppStepsFail": (Proof(fault=_raise_refused, labels={**OF_THE_APP, "step": "GrantReplicas"}, seconds=120),),
    "StreamAppOperatorRefused": (Proof(fault=_no_right, labels={"method": "GET", "resource": "pods", "code": "403"}),),
    "StreamAppOperatorStuck": (
        Proof(
            fault=_kept_answer,
            labels={"pod": "one"},
            seconds=120,
            settings={"request_deadline_seconds": 300.0},
        ),
    ),
    "StreamAppNoLeader": (
        Proof(fault=_all_killed, labels={"namespace": INSTALLED_IN}, mend=_all_started, pods=("one", "two")),
        Proof(fault=_nobody_can_lead, labels={"namespace": INSTALLED_IN}, mend=_writes_taken, pods=("one", "two")),
    ),
    "StreamAppLeaderChanges": (
        Proof(
            fault=_leaders_killed,
            labels={"namespace": INSTALLED_IN, "job": JOB},
            seconds=90,
            pods=("one", "two"),
        ),
    ),
    "StreamAppOperatorRestarts": (Proof(fault=_crash_loop, labels={"pod": "two"}, pods=("one", "two")),),
    "StreamAppRecordLost": (
        Proof(fault=_record_refused, labels={"pod": "one", "to": "topic"}),
        Proof(fault=_record_misconfigured, labels={"pod": "one", "to": "topic"}),
    ),
    "StreamAppAnalyticsLate": (
        Proof(fault=_no_run_for_days, labels={"cronjob": CRON_JOB}, mend=_run_succeeds),
        Proof(fault=_never_run, labels={"cronjob": CRON_JOB}, mend=_run_succeeds),
    ),
}
