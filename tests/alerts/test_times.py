"""The alerts' windows and waits, as they are installed, on series in made-up time: promtool plays hours in a second.

`test_firing` has the faults and shortens each `for:`. Here nothing is shortened. The series are those that a fault of
hours gives at the chart's interval of scrapes; Prometheus evaluates as rarely as it does by default.
"""

import itertools
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.alerts.prometheus import VALUES, programs, rules
from tests.chart.rendering import NAMESPACE, Json, render

pytestmark = pytest.mark.alerts
SCRAPED_EVERY = 30
EVALUATED_EVERY = 60
HOURS = 4
POD = f'namespace="{NAMESPACE}",job="{NAMESPACE}/streamapp-operator",pod="one"'
APP = f'namespace="demo",name="counter",job="{NAMESPACE}/streamapp-operator",pod="one"'
Values = Callable[[int], float | None]
"""What a series says so many seconds after the start; None while there is none."""


def failures(seconds: int) -> float:
    """Steps that failed, each after a deadline of ten seconds: at last after pauses of five minutes."""
    pauses = itertools.chain((10 + 2.0**power for power in range(9)), itertools.repeat(310.0))
    times = itertools.takewhile(lambda at: at <= seconds, itertools.accumulate(pauses))
    return float(sum(1 for _ in times))


def stuck_once(seconds: int) -> float | None:
    """Age of the oldest key; the kubelet ends the process after 150 s, and it starts anew."""
    since = seconds - 600
    if since < 0:
        return 0.0
    return float(since) if since <= 150 else None if since <= 180 else 0.0


def held_and_falling(seconds: int) -> float:
    """The lag of copies that catch up for hours."""
    return 1e9 - 1e4 * seconds


def gone_after_an_hour(seconds: int) -> float | None:
    """Who leads, of an installation whose pods go."""
    return 1.0 if seconds < 3600 else None


def restarts(seconds: int) -> float:
    """The start of a process that ends after ten minutes each."""
    return float(seconds // 600)


def new_leaders(seconds: int) -> float:
    """Changes of a leader that is killed every five minutes; it reads its Lease late."""
    return 0.0 if seconds % 300 < 30 else 1.0 + seconds // 300


def rollouts(seconds: int) -> float:
    """Two changes an hour."""
    return 1.0 + seconds // 1800


CASES: Mapping[str, tuple[str, Mapping[str, Values], Iterable[int], Iterable[int]]] = {
    "a step that fails every five minutes": (
        "StreamAppStepsFail",
        {f'streamapp_plan_steps_total{{{APP},step="GrantReplicas",result="error"}}': failures},
        (15, 30, 60, 120, 200),
        (0,),
    ),
    "a process that is stuck and restarted": (
        "StreamAppOperatorStuck",
        {f"streamapp_workqueue_oldest_seconds{{{POD}}}": stuck_once},
        (13, 14),
        (5, 10, 30, 60),
    ),
    "an old hold that makes progress": (
        "StreamAppHoldWithoutProgress",
        {
            f"streamapp_hold_seconds{{{APP}}}": float,
            f"streamapp_hold_waiting_tasks{{{APP}}}": lambda _: 4.0,
            f"streamapp_remaining_lag_records{{{APP}}}": held_and_falling,
        },
        (),
        (60, 90, 120, 200),
    ),
    "an old hold that makes none": (
        "StreamAppHoldWithoutProgress",
        {
            f"streamapp_hold_seconds{{{APP}}}": float,
            f"streamapp_hold_waiting_tasks{{{APP}}}": lambda _: 4.0,
            f"streamapp_remaining_lag_records{{{APP}}}": lambda _: 1e9,
        },
        (77, 90, 200),
        (30, 60, 70),
    ),
    "an installation that is gone, beside another": (
        "StreamAppNoLeader",
        {
            f"streamapp_leader{{{POD}}}": gone_after_an_hour,
            'streamapp_leader{namespace="elsewhere",job="elsewhere/streamapp-operator",pod="one"}': lambda _: 1.0,
        },
        (67, 100, 119, 125, 180, 230),
        (30, 59),
    ),
    "a process that ends every ten minutes": (
        "StreamAppOperatorRestarts",
        {f"streamapp_start_time_seconds{{{POD}}}": restarts},
        (45, 90, 200),
        (0, 25),
    ),
    "a leader that is killed every five minutes": (
        "StreamAppLeaderChanges",
        {f"streamapp_lease_transitions{{{POD}}}": new_leaders},
        (40, 100, 200),
        (0, 15),
    ),
    "two rollouts an hour": (
        "StreamAppLeaderChanges",
        {f"streamapp_lease_transitions{{{POD}}}": rollouts},
        (),
        (40, 100, 200),
    ),
    "brokers of a small installation beside a large one": (
        "StreamAppBrokersAway",
        {
            f'streamapp_condition{{{APP},type="KafkaReachable",status="False"}}': lambda _: 1.0,
            **{
                f'streamapp_condition{{name="{name}",job="large",type="KafkaReachable",status="False"}}': lambda _: 0.0
                for name in ("a", "b", "c")
            },
        },
        (7, 60),
        (3,),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_alert_fires_while_its_fault_lasts_and_not_else(case: str, tmp_path: Path) -> None:
    alert, series, firing, quiet = CASES[case]
    counts = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
    expected = {minute: [{"labels": "{}", "value": 1}] for minute in firing} | {minute: [] for minute in quiet}
    test = {
        "interval": f"{SCRAPED_EVERY}s",
        "input_series": [{"series": name, "values": _written(values)} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": counts, "eval_time": f"{minute}m", "exp_samples": samples} for minute, samples in expected.items()
        ],
    }
    ran = _play(tmp_path, [rule for rule in rules() if rule["alert"] == alert], test)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_is_rendered_by_default_waits_for_half_an_hour() -> None:
    values = {**VALUES, "monitoring": {"rules": {"create": "always"}}}
    (group,) = render(values).one("PrometheusRule")["spec"]["groups"]
    (rule,) = [rule for rule in group["rules"] if rule["alert"] == "StreamAppNotDecided"]
    assert rule["expr"] == "min by (namespace, name) (streamapp_last_success_age_seconds) > 1800"


def _play(folder: Path, alerts: list[Json], test: Json) -> "subprocess.CompletedProcess[str]":
    groups = {"groups": [{"name": "alerts", "rules": alerts}]}
    (folder / "rules.yaml").write_text(yaml.safe_dump(groups))
    whole = {"rule_files": ["rules.yaml"], "evaluation_interval": f"{EVALUATED_EVERY}s", "tests": [test]}
    (folder / "tests.yaml").write_text(yaml.safe_dump(whole))
    command = (programs() / "promtool", "test", "rules", folder / "tests.yaml")
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _written(values: Values) -> str:
    found = (values(seconds) for seconds in range(0, HOURS * 3600, SCRAPED_EVERY))
    return " ".join("stale" if value is None else f"{value:.12g}" for value in found)
