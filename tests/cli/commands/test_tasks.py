"""`kubectl streamapp tasks` against an API server with an operator behind its pod proxy."""

import json
from dataclasses import replace

import pytest
import yaml

from streamapp.api.http.messages import Tasks, tasks_path
from streamapp.core.facts.tasks import TaskFacts, TaskSet, TopologyUnknown
from tests.cli.cluster import Cluster
from tests.cli.commands.test_status import an_error
from tests.cli.conftest import Run
from tests.cli.operator_there import SYSTEM, OperatorThere
from tests.cli.showing import a_resource
from tests.core.doctor.subjects import a_patient
from tests.support import example

TASKS = tasks_path("demo", "wordcount")
BEHIND = a_patient(example.members(3, lag=12_000))


@pytest.fixture
def there(cluster: Cluster) -> OperatorThere:
    """An operator of two pods, with a Lease, and one StreamApp that is well."""
    cluster.put(a_resource(None))
    operator = OperatorThere(cluster)
    operator.install(lease="operator-a_x7k2")
    operator.serve()
    operator.tell_of(a_patient())
    return operator


def rows(text: str) -> list[list[str]]:
    """The table, without the bars."""
    lines = [line.split() for line in text.splitlines()]
    (title,) = (number for number, words in enumerate(lines) if words[:1] == ["task"])
    return [[word for word in words if not set(word) <= set("━╸─")] for words in lines[title + 1 :] if words]


def test_every_task_is_shown_with_owner_copies_and_who_covers_it(there: OperatorThere, run: Run) -> None:
    ran = run("tasks", "wordcount")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:3] == [
        "demo/wordcount  6 tasks",
        "facts from 2s ago, positions from 6s ago, caught up: at most 10,000 records behind",
        "covered without pod 2: 6 of 6 stateful tasks",
    ]
    assert rows(ran.out)[0] == ["0_0", "0", "running", "standby", "1", "0", "pod", "0,", "1"]
    assert rows(ran.out)[4] == ["0_4", "2", "running", "standby", "0", "0", "pod", "0"]
    assert there.forwarded == [f"operator-a:8081{TASKS}"]


def test_those_behind_have_bars_and_no_pod_that_covers_them(there: OperatorThere, run: Run) -> None:
    there.tell_of(BEHIND)
    out = run("tasks", "wordcount", "--behind").out
    assert rows(out)[4] == ["0_4", "2", "running", "standby", "0", "12,000", "no", "pod"]
    assert "━━━━" in out
    assert "covered without pod 2: 4 of 6 stateful tasks" in out


def test_behind_shows_only_what_is(there: OperatorThere, run: Run) -> None:
    assert "6 tasks, 0 shown" in run("tasks", "wordcount", "--behind").out
    nobody = tuple(
        example.member(n, active=[t for t in (2 * n, 2 * n + 1) if t != 5], standby=[(2 * n + 2) % 6, (2 * n + 3) % 6])
        for n in range(3)
    )
    there.tell_of(a_patient(nobody))
    assert [row[:3] for row in rows(run("tasks", "wordcount", "--behind").out)] == [["0_5", "none", "unassigned"]]


def test_ordinal_shows_what_that_pod_has(there: OperatorThere, run: Run) -> None:
    there.tell_of(a_patient())
    assert [row[0] for row in rows(run("tasks", "wordcount", "--ordinal", "1").out)] == ["0_0", "0_1", "0_2", "0_3"]
    assert run("tasks", "wordcount", "--ordinal", "-1").code == 2


def test_wide_has_a_line_each_with_the_member(there: OperatorThere, run: Run) -> None:
    there.tell_of(BEHIND)
    out = run("tasks", "wordcount", "-o", "wide").out
    assert rows(out)[4] == [
        *("0_4", "2", "running", "standby", "on", "0", "12,000", "behind"),
        *("no", "pod", "wordcount-2-consumer"),
    ]


def test_json_and_yaml_are_the_operators_answer_with_what_was_asked_for(there: OperatorThere, run: Run) -> None:
    document = run("tasks", "wordcount", "-o", "json", "--ordinal", "1").document
    told = Tasks.model_validate_json(there.answers[TASKS][1])
    assert [one["task"] for one in document["tasks"]] == ["0_0", "0_1", "0_2", "0_3"]
    assert document["tasks"][0] == json.loads(told.tasks[0].as_json())
    assert document["highest"] == 2
    assert yaml.safe_load(run("tasks", "wordcount", "-o", "yaml", "--ordinal", "1").out) == document


def test_what_is_not_known_is_said_and_not_shown_as_nothing(there: OperatorThere, run: Run) -> None:
    unwatched = replace(example.reading(example.members(3), example.SECOND), rebalance=None)
    there.tell_of(a_patient(readings=(unwatched,)))
    out = run("tasks", "wordcount").out
    assert rows(out)[0] == ["0_0", "0", "restoring", "standby", "1", "?", "not", "known", "?"] or rows(out)[0][5] == "?"
    assert "how far copies are is not known: " in out
    assert "covered without pod 2: unknown" in out
    there.tell_of(a_patient(task_set=TopologyUnknown("more than one store")))
    assert "more than one store" in run("tasks", "wordcount").out


def test_a_task_without_state_says_so(there: OperatorThere, run: Run) -> None:
    stateless = TaskFacts(id=example.task(6), stateful=False)
    there.tell_of(a_patient(task_set=TaskSet((*example.task_set().tasks, stateless))))
    assert rows(run("tasks", "wordcount").out)[6] == ["0_6", "none", "unassigned", "none", "no", "state"]


def test_without_a_lease_the_only_pod_is_asked(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(None))
    operator = OperatorThere(cluster, leader="alone")
    operator.install("alone")
    operator.serve()
    assert run("tasks", "wordcount").code == 0
    operator.install("another")
    assert an_error(run("tasks", "wordcount").err) == [
        f"operator in namespace {SYSTEM}",
        "2 pods run and none holds the Lease streamapp-operator",
        "try again in a few seconds; if this persists, read the logs of the pods",
    ]


def test_who_may_list_no_pods_finds_the_leader_by_the_lease(there: OperatorThere, run: Run) -> None:
    there.cluster.refuse(403, "not for you", path="/pods", query="labelSelector")
    assert run("tasks", "wordcount").code == 0


def test_an_empty_lease_is_none(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(None))
    operator = OperatorThere(cluster, leader="alone")
    operator.install("alone", lease="")
    operator.serve()
    assert run("tasks", "wordcount").code == 0


def test_the_operators_namespace_is_an_option_and_a_variable(
    cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(a_resource(None))
    operator = OperatorThere(cluster, leader="alone")
    operator.install("alone", namespace="ops")
    operator.serve()
    assert an_error(run("tasks", "wordcount").err)[1] == (
        "there is no pod with the label app.kubernetes.io/name=streamapp-operator"
    )
    assert run("tasks", "wordcount", "--operator-namespace", "ops").code == 0
    monkeypatch.setenv("STREAMAPP_OPERATOR_NAMESPACE", "ops")
    assert run("tasks", "wordcount").code == 0


@pytest.mark.parametrize(
    ("path", "what", "step"),
    [
        ("/leases/", f"Lease {SYSTEM}/streamapp-operator", f"ask for a Role in namespace {SYSTEM} with get leases"),
        (
            "/portforward",
            f"operator pod {SYSTEM}/operator-a",
            f"ask for a Role in namespace {SYSTEM} with get and create pods/portforward",
        ),
    ],
)
def test_a_right_that_is_missing_is_named(there: OperatorThere, run: Run, path: str, what: str, step: str) -> None:
    there.cluster.refuse(403, "not allowed", path=path)
    ran = run("tasks", "wordcount")
    assert ran.code == 1
    assert an_error(ran.err) == [what, "not allowed", step]


def test_a_replica_that_does_not_lead_and_an_answer_that_is_none_are_told(there: OperatorThere, run: Run) -> None:
    there.leader = "operator-b"
    what, why, step = an_error(run("tasks", "wordcount").err)
    assert (what, why) == (
        f"operator pod {SYSTEM}/operator-a",
        "503: this replica of the operator does not lead",
    )
    assert step.startswith("try again in a few seconds")
    there.leader = "operator-a"
    there.answers[TASKS] = (200, b"<html>")
    _, why, step = an_error(run("tasks", "wordcount").err)
    assert why.startswith(f"its answer to {TASKS} is not readable: ")
    assert step == "use the same version of the operator and the command line"


def test_a_name_that_is_mistyped_is_told_before_any_operator_is_asked(there: OperatorThere, run: Run) -> None:
    assert an_error(run("tasks", "wordcuont").err)[2] == "did you mean wordcount?"
    assert there.forwarded == []


def test_a_newer_operator_may_say_more(there: OperatorThere, run: Run) -> None:
    status, body = there.answers[TASKS]
    there.answers[TASKS] = (status, body.replace(b'{"toldAt"', b'{"mood":"good","toldAt"', 1))
    assert run("tasks", "wordcount").code == 0
