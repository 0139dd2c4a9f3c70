"""What an autoscaler by processor time makes of a load that comes and goes, and of pods that only restore.

Each test has an application of its own; the autoscaler's paces are the cluster's, its windows are short.
"""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.api_changes import watch_history
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import ObservedApp, remove_all, unique_name
from lab.scenarios.stream_app import BUSY, LEAST, MOST, ON_DEMAND, QUIET, Autoscaled
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(1200)]
FLAPPING_SECONDS = 600
HALF_SECONDS = 50
"""So long the load is high, and so long it is low."""


@contextmanager
def deployed(kubectl: Kubectl, bootstrap: str, application: DemoApplication, **spec: Any) -> Iterator[ObservedApp]:
    """An application whose replicas nobody writes but by scaling, with two pods."""
    remove_all(kubectl, bootstrap, [application])
    observed = ObservedApp.of(kubectl, bootstrap, application)
    observed.app.preload()
    observed.app.apply(None, **spec)
    observed.app.scale(LEAST)
    observed.app.wait_until_converged(LEAST)
    yield observed
    remove_all(kubectl, bootstrap, [application])


def turns(wishes: list[int]) -> int:
    """How often a row of numbers changes its direction."""
    steps = [after - before for before, after in itertools.pairwise(wishes) if after != before]
    return sum(1 for before, after in itertools.pairwise(steps) if (before > 0) != (after > 0))


@pytest.mark.usefixtures("operator")
def test_ten_minutes_of_flapping_load_lose_and_double_nothing(
    kubectl: Kubectl, bootstrap: str, session: Session
) -> None:
    settings = {"EXACTLY_ONCE": "true", "STREAMS_NUM_STANDBY_REPLICAS": "0"}
    application = DemoApplication(unique_name("flapping"), settings, 20_000, QUIET, "t-flapping")
    with deployed(kubectl, bootstrap, application, **ON_DEMAND) as observed:
        observed.start_load()
        autoscaler, began = Autoscaled(observed.app), observed.clock()
        autoscaler.apply()
        with watch_history(session, observed.app.namespace, "streamapps") as history:
            ends = time.monotonic() + FLAPPING_SECONDS
            for rate in itertools.cycle((BUSY, QUIET)):
                autoscaler.load(rate)
                time.sleep(HALF_SECONDS)
                if time.monotonic() > ends:
                    break
            wishes = [change.object["spec"]["replicas"] for change in history.changes()]
        assert turns(wishes) >= 4, wishes
        assert max(wishes) > LEAST
        assert observed.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
        assert observed.app.application.exactly_once
        require_no_record_lost(observed)
        assert observed.steps() != []


SLOW_RESTORE = {
    "STREAMS_NUM_STANDBY_REPLICAS": "0",
    # Many small fetches: so long that the autoscaler looks several times, and as busy as a restore is.
    "STREAMS_RESTORE_CONSUMER_MAX_PARTITION_FETCH_BYTES": "4096",
    "STREAMS_RESTORE_CONSUMER_FETCH_MAX_BYTES": "4096",
}


@pytest.mark.usefixtures("operator")
def test_what_pods_spend_on_restoring_raises_no_wish(kubectl: Kubectl, bootstrap: str) -> None:
    application = DemoApplication(unique_name("restoring"), SLOW_RESTORE, 400_000, QUIET, "t-restoring")
    agent = {"agent": {"enabled": True, "defaults": ["heartbeat", "leave"]}}
    with deployed(kubectl, bootstrap, application, **agent) as observed:
        lose_all_state(kubectl, observed)
        autoscaler = Autoscaled(observed.app, target="50m")
        autoscaler.apply()
        busiest, wishes = 0, set()
        while ready(observed) < LEAST:
            busiest = max([busiest, *autoscaler.processor_time().values()])
            wishes.add(observed.app.wish())
            assert observed.app.condition("Stalled")["status"] == "False"
            time.sleep(1)
        # Well above its target while it restored, and yet nothing was wished for.
        assert busiest > 100
        assert wishes == {LEAST}
        assert MOST > LEAST


def ready(observed: ObservedApp) -> int:
    """How many pods are ready."""
    return int(observed.app.status().get("readyReplicas", 0))


def lose_all_state(kubectl: Kubectl, observed: ObservedApp) -> None:
    """Let every pod begin without a volume."""
    namespace = ("--namespace", observed.app.namespace)
    selector = f"--selector=streamapp.dev/app={observed.app.name}"
    kubectl.run("delete", "persistentvolumeclaims", *namespace, selector, "--wait=false")
    kubectl.run("delete", "pods", *namespace, selector, "--wait=true", timeout_seconds=180)
    wait_until("the pods are back", lambda: len(observed.app.pods()) == LEAST, 60)
    wait_until("none is ready", lambda: ready(observed) == 0, 60)
