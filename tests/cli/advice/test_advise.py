"""`kubectl streamapp advise` against an API server: what it shows, and what it says where there is nothing to show."""

import json
import shlex
from datetime import timedelta
from typing import Any

import pytest

from streamapp.api.insight import (
    FILE,
    Advice,
    AppInsight,
    Budget,
    Effect,
    EtaScore,
    Insight,
    LearnedEta,
    Patch,
    to_json,
)
from streamapp.cli.advice.learned import Learned
from streamapp.cli.advice.screen import app_screen, overview_screen
from tests.builders import NOW
from tests.cli.cluster import Cluster
from tests.cli.commands.test_status import an_error
from tests.cli.conftest import Run
from tests.cli.operator_there import SYSTEM
from tests.cli.showing import a_resource, shown
from tests.streamapps import UID

WINDOW = Advice(
    knob="HorizontalPodAutoscaler scaleUp window",
    current="not in the record",
    proposed="5m",
    evidence="14 changes up were taken back, each within 4m",
    days=28,
    n=14,
    effect=Effect(low=11.2, mid=14.0, high=14.0, unit="flap pairs fewer a day"),
    vetoes=("each change up begins 5m later: see that the lag allows it", "only 9 of 14 days are known"),
    patch=Patch(
        kind="HorizontalPodAutoscaler",
        name="words",
        patch='{"spec": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 300}}}}',
    ),
)
STANDBY = Advice(
    knob="num.standby.replicas", current="0", proposed="1", evidence="tasks stood for 4m", days=28, n=3, effect=None
)
WORDS = AppInsight(
    namespace="demo",
    app="wordcount",
    uid=UID,
    days=28,
    eta=EtaScore(cover=0.91, median_error_seconds=-4.2, low=0.5, high=2.0, holds=44, days=20),
    budget=Budget(month="2026-11", lost_seconds=240.0, budget_seconds=2400.0),
    advice=(WINDOW, STANDBY),
)
OTHER = WORDS.model_copy(update={"app": "counts", "uid": "another", "advice": ()})
INSIGHT = Insight(
    cluster="north",
    made_at=NOW - timedelta(hours=3),
    valid_until=NOW + timedelta(days=2, hours=21),
    apps=(WORDS, OTHER),
)


def publish(cluster: Cluster, text: str | None = None, *, name: str = "streamapp-insight", **changed: Any) -> None:
    """Put insight into the ConfigMap, or another text."""
    whole = to_json(INSIGHT.model_copy(update=changed)).decode() if text is None else text
    body = {"metadata": {"namespace": SYSTEM, "name": name}, "data": {FILE: whole} if whole else None}
    cluster.do(lambda server: server.put("configmaps", body))


@pytest.fixture
def there(cluster: Cluster) -> Cluster:
    """A cluster with two StreamApps of the insight, and one that it does not know."""
    cluster.put(a_resource(None))
    cluster.put(a_resource(None, {"metadata.uid": "another"}, name="counts"))
    cluster.put(a_resource(None, {"metadata.uid": "young"}, name="fresh"))
    return cluster


def test_all_about_one_is_a_card_for_each_piece(there: Cluster, run: Run) -> None:
    publish(there)
    ran = run("advise", "wordcount")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "demo/wordcount  2 pieces of advice",
        "learned 3h ago, 2026-11-21 09:00:00 UTC of cluster north, valid for 2d21h",
        "budget      2026-11: tasks stood for 4m at most, 10 % of the month's 40m",
        "estimates   91 % of 44 holds on 20 days were in the range, in the median 4.2s too late; the status",
        "            shows the range",
        "",
        "1. HorizontalPodAutoscaler scaleUp window: not in the record → 5m",
        "figures     14 changes up were taken back, each within 4m (n 14, 28 days)",
        "effect      14 (11.2 to 14) flap pairs fewer a day",
        "look first  each change up begins 5m later: see that the lag allows it",
        "            only 9 of 14 days are known",
        "   patch",
        "   kubectl patch horizontalpodautoscaler words --namespace demo --type merge --patch "
        """'{"spec": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 300}}}}'""",
        "",
        "2. num.standby.replicas: 0 → 1",
        "figures     tasks stood for 4m (n 3, 28 days)",
    ]


def test_several_have_a_line_for_each_piece(there: Cluster, run: Run) -> None:
    publish(there)
    lines = run("advise").out.splitlines()
    assert [" ".join(line.split()) for line in lines[2:-2]] == [
        "name budget advice effect n days",
        "counts 10 % nothing to advise 28",
        "fresh nothing is known yet: no run of the pipeline has read its record",
        "wordcount 10 % HorizontalPodAutoscaler scaleUp window: not in the record → 5m "
        "14 (11.2 to 14) flap pairs fewer a day 14 28",
        "num.standby.replicas: 0 → 1 3 28",
    ]
    assert lines[-1].endswith("kubectl streamapp advise NAME")
    assert "demo/wordcount" in run("advise", "--all-namespaces").out
    assert run("advise", "-n", "empty").out == "No StreamApps.\n"


def test_a_narrow_terminal_shows_all_of_it() -> None:
    learned = Learned(namespace="demo", name="wordcount", insight=WORDS)
    for screen in (overview_screen(INSIGHT, [learned], NOW), app_screen(INSIGHT, learned, NOW)):
        lines = shown(screen, 80)
        assert max(len(line) for line in lines if "kubectl patch" not in line) <= 80
        words = " ".join(" ".join(lines).split())
        assert all(part in words for part in ("14 (11.2 to 14) flap", "num.standby.replicas: 0", "28"))


def test_programs_get_the_figures_and_the_command(there: Cluster, run: Run) -> None:
    publish(there)
    document = run("advise", "wordcount", "-o", "json").document
    (item,) = document.pop("items")
    assert document == {
        "configMap": f"{SYSTEM}/streamapp-insight",
        "cluster": "north",
        "madeAt": "2026-11-21T09:00:00+00:00",
        "validUntil": "2026-11-24T09:00:00+00:00",
    }
    assert (item["known"], item["budget"]["used"], item["eta"]["shown"]) == (True, 0.1, True)
    first, second = item["advice"]
    assert first["effect"] == {"low": 11.2, "mid": 14.0, "high": 14.0, "unit": "flap pairs fewer a day"}
    assert json.loads(shlex.split(first["command"])[-1]) == json.loads(first["patch"]["patch"])
    assert "command" not in second
    items = run("advise", "-o", "json").document["items"]
    assert [(one["name"], one["known"]) for one in items] == [("counts", True), ("fresh", False), ("wordcount", True)]


def test_a_patch_cannot_end_its_quotes(there: Cluster, run: Run) -> None:
    hostile = Patch(kind="StreamApp", name="", patch='{"a": "\'; reboot; \'"}')
    publish(there, apps=(WORDS.model_copy(update={"advice": (STANDBY.model_copy(update={"patch": hostile}),)}),))
    command = run("advise", "wordcount", "-o", "json").document["items"][0]["advice"][0]["command"]
    words = ["kubectl", "patch", "streamapp", "NAME", "--namespace", "demo", "--type", "merge", "--patch"]
    assert shlex.split(command) == [*words, hostile.patch]


def test_another_streamapp_under_an_old_name_gets_no_old_advice(there: Cluster, run: Run) -> None:
    there.remove("wordcount")
    there.put(a_resource(None, {"metadata.uid": "made-anew"}))
    publish(there)
    assert "nothing is known yet" in run("advise", "wordcount").out


def test_one_that_may_have_had_no_room_is_not_said_to_be_unread(there: Cluster, run: Run) -> None:
    publish(there, left_out=2)
    told = "nothing is known: 2 StreamApps had no room in the insight; read the report"
    assert told in " ".join(run("advise").out.split())
    assert told in " ".join(run("advise", "fresh").out.split())


def test_advice_writes_nothing(there: Cluster, run: Run) -> None:
    publish(there)
    before = there.written
    run("advise")
    run("advise", "wordcount")
    assert there.written == before


@pytest.mark.parametrize(
    ("text", "changed", "why"),
    {
        "empty": ("", {}, "no run of `streamapp-analytics` has written insight into it"),
        "old": (None, {"valid_until": NOW}, "it was valid until"),
        "rubbish": ("{}", {}, "its insight cannot be used: cluster: Field required"),
        "from the future": (None, {"made_at": NOW + timedelta(hours=1)}, "it was made in the future"),
    }.values(),
    ids=str,
)
def test_insight_that_cannot_be_shown_says_why_and_what_brings_more(
    text: str | None, changed: Any, why: str, there: Cluster, run: Run
) -> None:
    publish(there, text, **changed)
    ran = run("advise")
    what, cause, step = an_error(ran.err)
    assert (ran.code, ran.out, what) == (1, "", f"ConfigMap {SYSTEM}/streamapp-insight")
    if "valid until" in why:
        why = "its insight was made 3h ago and was valid until 2026-11-21 12:00:00 UTC; nothing of it is shown"
    assert why in cause
    assert step == (
        "run the CronJob of the pipeline now, and read the log of its newest job "
        f"(`kubectl get cronjobs,jobs --namespace {SYSTEM}`)"
    )


def test_without_a_config_map_the_error_names_what_makes_one(there: Cluster, run: Run) -> None:
    what, cause, step = an_error(run("advise", "--config-map", "mine", "--operator-namespace", "ops").err)
    assert (what, cause) == ("ConfigMap ops/mine", "it does not exist, so there is no insight")
    assert "`analytics.enabled`" in step
    assert "--operator-namespace" in step
    publish(there, name="mine")
    assert run("advise", "--config-map", "mine").code == 0


def test_without_the_right_the_error_names_the_role(there: Cluster, run: Run) -> None:
    publish(there)
    there.refuse(403, "configmaps is forbidden: User cannot get", path="configmaps")
    what, _, step = an_error(run("advise").err)
    assert what == f"ConfigMap {SYSTEM}/streamapp-insight"
    assert step == f"ask for a Role with get on configmaps, resourceNames streamapp-insight, in namespace {SYSTEM}"


def test_a_mistyped_name_has_the_near_ones_and_all_namespaces_no_name(there: Cluster, run: Run) -> None:
    publish(there)
    assert "did you mean wordcount or counts?" in run("advise", "wordcoun").err
    assert run("advise", "wordcount", "-A").code == 2


def test_a_score_that_is_not_good_says_what_it_needs(there: Cluster, run: Run) -> None:
    assert WORDS.eta is not None
    poor = WORDS.eta.model_copy(update={"cover": 0.5, "median_error_seconds": 90.0})
    learned = LearnedEta(rates={"0": 1000.0}, score=WORDS.eta)
    publish(there, apps=(WORDS.model_copy(update={"eta": poor, "learned_eta": learned, "budget": None}),))
    words = " ".join(run("advise", "wordcount").out.split())
    assert "budget no downtime is known" in words
    assert "1m30s too early; the status shows no range: it needs 85 to 97 % over 20 holds or more" in words
    assert "learned 91 % of 44 holds on 20 days were in the range" in words
    (item,) = run("advise", "wordcount", "-o", "json").document["items"]
    assert (item["eta"]["shown"], item["learnedEta"]["score"]["shown"]) == (False, True)
    assert item["learnedEta"]["rates"] == {"0": 1000.0}
