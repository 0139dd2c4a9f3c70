"""`kubectl streamapp plan` against an API server with an operator behind its pod proxy."""

from dataclasses import replace

import pytest
import yaml

from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.simulator.forecast.change import STOCK
from tests.builders import a_snapshot
from tests.cli.cluster import Cluster
from tests.cli.commands.test_status import an_error
from tests.cli.conftest import Run
from tests.cli.operator_there import OperatorThere, that_tells_of
from tests.cli.showing import Json, a_resource
from tests.core.doctor.subjects import a_patient
from tests.statuses import answer
from tests.support import example

SETTLED = answer(a_snapshot(desired=3, record=None))


def an_app(changes: Json | None = None) -> Json:
    return a_resource(SETTLED | (changes or {}), {"spec.replicas": 3})


@pytest.fixture
def there(cluster: Cluster) -> OperatorThere:
    """An operator, and one StreamApp of three pods, six tasks with one standby each, a million records a task."""
    cluster.put(an_app())
    return that_tells_of(cluster, a_patient())


def rows(text: str) -> list[str]:
    """The lines of the table, with single spaces."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("to assignor moves"))
    return lines[start + 1 : lines.index("", start)]


@pytest.mark.usefixtures("there")
def test_a_scale_down_shows_moves_rebalances_and_the_worst_share(run: Run) -> None:
    ran = run("plan", "wordcount", "--to", "2")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "demo/wordcount  from 3 to 2 replicas, 6 stateful tasks"
    # Dealt in turn, 0_0, 0_2 and 0_4 end on pod 0: four tasks move, and only the two of pod 2 had to.
    assert rows(ran.out) == ["2 stock * 4 4 10m42s to 11m2s 1s to 3.5s 3 of 6 0"]
    assert "4 tasks will move, 2 of them needlessly. 0 learners and 0 cold tasks read 0 records." in ran.out
    assert "num.standby.replicas 1" in ran.out


@pytest.mark.usefixtures("there")
def test_the_rounds_are_drawn_with_the_tasks_of_each_pod(run: Run) -> None:
    lines = [" ".join(line.split()) for line in run("plan", "wordcount", "--to", "2").out.splitlines()]
    start = lines.index("after pod 0 pod 1 waiting")
    assert lines[start + 1 : start + 5] == [
        "0s ━━━━━━━━ 3 ━━━━━╸── 2 1",
        "3s ━━━━━━━━ 3 ━━━━━━━━ 3 0",
        "10m3s ━━━━━╸── 2 ━━━━━╸── 2 2",
        "10m6s ━━━━━━━━ 3 ━━━━━━━━ 3 0",
    ]


@pytest.mark.usefixtures("there")
def test_programs_get_each_move_and_each_round(run: Run) -> None:
    document = run("plan", "wordcount", "--to", "2", "-o", "json").document
    (only,) = document["outcomes"]
    assert only["moved"] == [
        {"task": "0_1", "from": 0, "to": 1},
        {"task": "0_2", "from": 1, "to": 0},
        {"task": "0_4", "from": 2, "to": 0},
        {"task": "0_5", "from": 2, "to": 1},
    ]
    first, *_, last = document["rounds"]
    assert (first["cause"], first["waiting"]) == ("members joined or left", 1)
    assert last["pods"] == [
        {"ordinal": 0, "active": ["0_0", "0_2", "0_4"], "copies": ["0_1", "0_3", "0_5"]},
        {"ordinal": 1, "active": ["0_1", "0_3", "0_5"], "copies": ["0_0", "0_2", "0_4"]},
    ]


@pytest.mark.usefixtures("there")
def test_compare_shows_that_the_learner_assignor_moves_only_what_must_move(run: Run) -> None:
    document = run("plan", "wordcount", "--to", "2", "--compare", "--standbys", "0", "-o", "json").document
    stock, learner, fewer = document["outcomes"]
    assert (fewer["assignor"], fewer["to"], fewer["moves"]) == ("stock", 1, 4)
    assert (stock["assignor"], stock["chosen"], learner["assignor"], learner["chosen"]) == (
        *("stock", True),
        *("learner", False),
    )
    assert (learner["moves"], learner["needlessMoves"], learner["cold"]) == (2, 0, 0)
    assert stock["moves"] > learner["moves"]


@pytest.mark.usefixtures("there")
def test_a_scale_up_is_predicted_with_a_range_of_times(run: Run) -> None:
    document = run("plan", "wordcount", "--to", "200%", "-o", "json").document
    (only,) = document["outcomes"]
    assert (document["from"], document["to"], document["statefulTasks"]) == (3, 6, 6)
    assert (only["moves"], only["needlessMoves"], only["cold"], only["converges"]) == (
        5,
        2,
        0,
        True,
    )  # each task a pod; one stays
    assert 0 < only["seconds"]["p10"] < only["seconds"]["p50"] < only["seconds"]["p90"]


@pytest.mark.usefixtures("there")
def test_yaml_is_the_same_document(run: Run) -> None:
    arguments = ("plan", "wordcount", "--to", "2", "-o")
    assert yaml.safe_load(run(*arguments, "yaml").out) == run(*arguments, "json").document


@pytest.mark.usefixtures("there")
def test_the_nearest_even_sizes_are_named(run: Run) -> None:
    document = run("plan", "wordcount", "--to", "5", "-o", "json").document
    assert document["evenReplicas"] == {"below": 3, "above": 6}
    assert "do not divide all tasks evenly; the nearest that do: 3 and 6." in run("plan", "wordcount", "--to", "5").out


def test_on_demand_the_learner_assignor_is_the_one_in_use(cluster: Cluster, there: OperatorThere, run: Run) -> None:
    cluster.put(an_app({"learnerSource": "OnDemand"}))
    there.tell_of(a_patient())
    document = run("plan", "wordcount", "--to", "2", "-o", "json").document
    (only,) = document["outcomes"]
    assert (only["assignor"], only["moves"], only["needlessMoves"], only["cold"]) == ("learner", 2, 0, 0)


def test_unknown_lags_count_as_empty_copies_and_unknown_sizes_give_no_time(there: OperatorThere, run: Run) -> None:
    unwatched = replace(example.reading(example.members(3), example.SECOND), rebalance=None)
    there.tell_of(a_patient(readings=(unwatched,)))
    out = run("plan", "wordcount", "--to", "2").out
    assert " unknown unknown " in rows(out)[0]
    assert "the sizes of 6 changelogs are not known, so no time is given" in out
    assert "the lags of 6 copies are not known; they count as empty" in out


def test_without_a_known_layout_nothing_is_predicted(there: OperatorThere, run: Run) -> None:
    there.tell_of(a_patient(task_set=TopologyUnknown("more than one store")))
    error = an_error(run("plan", "wordcount", "--to", "2").err)
    assert error[0] == "StreamApp demo/wordcount"
    assert "more than one store" in error[1]


@pytest.mark.usefixtures("there")
def test_a_play_that_is_cut_off_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamapp.simulator.forecast.change.FEWEST_ROUNDS", 1)
    monkeypatch.setattr("streamapp.simulator.forecast.change.MOST_WORK", {STOCK: 0})
    out = run("plan", "wordcount", "--to", "6").out
    assert rows(out)[0].split()[:5] == ["6", "stock", "*", "4+", "1+"]
    assert "there are more than this command plays" in out
    (only,) = run("plan", "wordcount", "--to", "6", "-o", "json").document["outcomes"]
    assert only["converges"] is False


@pytest.mark.usefixtures("there")
def test_zero_replicas_and_an_unknown_version_are_refused(run: Run) -> None:
    assert "nothing remains" in an_error(run("plan", "wordcount", "--to", "0").err)[1]
    ran = run("plan", "wordcount", "--to", "2", "--kafka-version", "2.5.0")
    assert ran.code == 2
    assert "modelled from 2.6 on" in ran.err


def in_zones(*zones: str, **asked: int) -> Json:
    """The application with pods in these zones, and floors of its spec."""
    members = [{**member, "zone": zone} for member, zone in zip(SETTLED["members"], zones, strict=True)]
    floors = {f"spec.scaleDown.{name}": value for name, value in asked.items()}
    return a_resource(SETTLED | {"members": members}, {"spec.replicas": 3, **floors})


def warnings(run: Run, to: int) -> list[str]:
    found: list[str] = run("plan", "wordcount", "--to", str(to), "-o", "json").document["warnings"]
    return [one for one in found if "scaleDown" in one]


def test_the_zone_of_each_pod_is_shown(cluster: Cluster, there: OperatorThere, run: Run) -> None:
    cluster.put(in_zones("a", "b", "a"))
    there.tell_of(a_patient())
    lines = [" ".join(line.split()) for line in run("plan", "wordcount", "--to", "2").out.splitlines()]
    assert "after pod 0 (a) pod 1 (b) waiting" in lines
    assert run("plan", "wordcount", "--to", "2", "-o", "json").document["zones"] == {"0": "a", "1": "b", "2": "a"}
    assert warnings(run, 2) == []


def test_too_few_copies_are_foreseen(cluster: Cluster, there: OperatorThere, run: Run) -> None:
    """With one standby, the tasks and the copies of the pod that leaves have one place until a new standby is made."""
    cluster.put(in_zones("a", "b", "a", minCopies=2))
    there.tell_of(a_patient())
    few = (
        "The operator holds this scale-down while 4 tasks have fewer copies than `scaleDown.minCopies` asks for (0_2)."
    )
    assert warnings(run, 2) == [few]
    stops = "The scale-down stops at 2 pods, by `minCopies: 2` of `scaleDown`: the lowest ordinals remain."
    assert warnings(run, 1) == [few, stops]


def test_too_few_zones_are_foreseen(cluster: Cluster, there: OperatorThere, run: Run) -> None:
    cluster.put(in_zones("a", "a", "b", minZones=2))
    there.tell_of(a_patient())
    assert warnings(run, 2) == [
        "The operator holds this scale-down while 6 tasks have copies in fewer zones than `scaleDown.minZones` asks "
        "for (0_0).",
        "The scale-down stops at 3 pods, by `minZones: 2` of `scaleDown`: the lowest ordinals remain.",
    ]


def test_an_unknown_zone_is_foreseen_where_zones_are_asked_for(
    cluster: Cluster, there: OperatorThere, run: Run
) -> None:
    cluster.put(a_resource(SETTLED, {"spec.replicas": 3, "spec.scaleDown.minZones": 1}))
    there.tell_of(a_patient())
    assert warnings(run, 2) == ["The zone of pod 0, 1 is unknown, and `scaleDown.minZones` needs it."]


@pytest.mark.usefixtures("there")
def test_a_scale_up_has_no_floor(cluster: Cluster, run: Run) -> None:
    cluster.put(in_zones("a", "a", "a", minZones=2, minCopies=9))
    assert warnings(run, 4) == []
