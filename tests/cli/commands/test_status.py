"""The commands against an API server: what they print, what they say when it goes wrong, and their exit codes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamapp.cli.model.explain import Question
from tests.builders import a_record, a_snapshot, an_unreadable
from tests.cli.cluster import NO_DEFINITION, Cluster
from tests.cli.conftest import Run
from tests.cli.showing import Json, a_resource, one_line
from tests.statuses import answer, held_status
from tests.support import example

SETTLED = answer(a_snapshot(desired=3, record=None))
STALLED = answer(a_snapshot(record=a_record(gave_up_at=1)))


def held(name: str = "wordcount", **changes: Any) -> Json:
    return a_resource(held_status(), {"spec.replicas": 2, **changes}, name=name)


def an_error(text: str) -> list[str]:
    """The three parts of one error, without their labels."""
    lines = text.splitlines()
    assert [line[:7] for line in lines] == ["error: ", "cause: ", "next:  "]
    return [line[7:] for line in lines]


def test_status_of_one_is_the_screen(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    ran = run("status", "wordcount")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "demo/wordcount  HELD  LearnersCatchingUp"
    assert "3 to 2, pod 2 leaves next" in ran.out


def test_status_without_a_name_has_one_line_each(cluster: Cluster, run: Run) -> None:
    cluster.put(held("words"))
    cluster.put(a_resource(SETTLED, name="counts"))
    cluster.put(a_resource(None, name="new"))
    ran = run("status")
    assert ran.code == 0
    assert [line.split() for line in ran.out.splitlines()] == [
        ["name", "desired", "current", "ready", "converged", "state", "eta", "age"],
        ["counts", "3", "3", "3", "yes", "settled", "1d"],
        ["new", "3", "none", "?", "?", "unanswered", "1d"],
        ["words", "2", "3", "3", "0", "%", "held", "LearnersCatchingUp", "never", "1d"],
    ]


def test_the_namespace_is_that_of_the_context_unless_one_is_given(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    cluster.put(held("payments", **{"metadata.namespace": "prod"}))
    assert "payments" not in run("status").out
    assert "payments" in run("status", "-n", "prod").out
    everywhere = run("status", "-A").out.splitlines()
    assert [line.split()[:2] for line in everywhere] == [
        ["namespace", "name"],
        ["demo", "wordcount"],
        ["prod", "payments"],
    ]


def test_in_a_pipe_there_are_no_colours_and_no_broken_lines(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    ran = run("status", "wordcount")
    assert "\x1b" not in ran.out
    assert "Copies on the remaining pods are still behind. 2 tasks wait; 0_5 on ordinal 0 is 50000 records" in ran.out
    assert not [line for line in ran.out.splitlines() if line != line.rstrip()]


def test_columns_sets_the_width(cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.put(held())
    monkeypatch.setenv("COLUMNS", "70")
    assert max(map(len, run("status", "wordcount").out.splitlines())) <= 70


def test_colours_are_forced_and_forbidden_by_the_usual_variables(
    cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(held())
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in run("status", "wordcount").out
    monkeypatch.setenv("NO_COLOR", "1")
    colours = {"\x1b[31m", "\x1b[33m", "\x1b[1;33m", "\x1b[36m"}
    assert not [colour for colour in colours if colour in run("status", "wordcount").out]


def test_json_has_the_figures_and_the_whole_status(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    document = run("status", "wordcount", "-o", "json").document
    assert document.pop("status") == held_status()
    assert document == {
        "namespace": "demo",
        "name": "wordcount",
        "state": "held",
        "reason": "LearnersCatchingUp",
        "message": "Copies on the remaining pods are still behind. 2 tasks wait; 0_5 on ordinal 0 is 50000 records "
        "behind.",
        "desired": 2,
        "statefulSetReplicas": 3,
        "actual": 3,
        "readyReplicas": 3,
        "converged": False,
        "held": True,
        "lagFalling": False,
        "createdAt": "2026-11-20T12:00:00+00:00",
        "statusWrittenAt": "2026-11-21T12:00:00+00:00",
    }


def test_a_list_is_a_list_in_json_and_yaml_even_if_it_is_empty(cluster: Cluster, run: Run) -> None:
    assert run("status", "-o", "json").document == {"items": []}
    cluster.put(held())
    ran = run("status", "-o", "yaml")
    assert [one["name"] for one in yaml.safe_load(ran.out)["items"]] == ["wordcount"]


def test_what_is_not_known_is_absent_from_json(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(None))
    document = run("status", "wordcount", "-o", "json").document
    assert set(document) == {"namespace", "name", "state", "doubt", "desired", "held", "createdAt", "status"}


def test_explain_answers_in_sentences(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    ran = run("explain", "wordcount")
    assert ran.code == 0
    text = one_line(ran.out)
    assert "wanted Desired 2, current 3 (3 running, 3 ready)." in text
    assert "\n           kubectl streamapp scale wordcount --namespace demo 3\n" in ran.out


def test_a_command_to_copy_is_never_broken(cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.put(held())
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("explain", "wordcount").out.splitlines()
    command = "kubectl streamapp override wordcount --namespace demo --hold-id h-1 --reason '<why>'"
    assert f"           {command}" in lines
    assert max(len(line) for line in lines if "kubectl" not in line) <= 60


def test_explain_in_json_has_every_question(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    document = run("explain", "wordcount", "-o", "json").document
    questions = ["wanted", "why", "since", "waitsFor", "howLong", "ends", "youCan"]
    assert list(document) == ["namespace", "name", "state", "reason", *questions]
    assert len(questions) == len(Question)
    assert document["howLong"] == [
        "Until the copies for the next pod are caught up: never at the present rate. The lag does not decrease."
    ]


HOW_IT_IS = {
    "settled": (a_resource(SETTLED), 0),
    "held": (held(), 3),
    "just changed": (a_resource(SETTLED, generation=2, asked_ago=1), 3),
    "stalled": (a_resource(STALLED), 4),
    "not known": (a_resource(answer(a_snapshot(desired=3, record=None, readings=(an_unreadable(),)))), 4),
    "never answered": (a_resource(None), 4),
    "old": (a_resource(SETTLED, generation=2), 4),
}


@pytest.mark.parametrize(("resource", "code"), HOW_IT_IS.values(), ids=HOW_IT_IS)
def test_the_exit_code_says_how_it_is_only_where_it_is_asked_to(
    cluster: Cluster, run: Run, resource: Json, code: int
) -> None:
    cluster.put(resource)
    assert run("status", "wordcount").code == 0
    assert run("status", "wordcount", "--exit-code").code == code
    assert run("status", "--exit-code", "-o", "json").code == code


def test_of_several_the_worst_gives_the_exit_code(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(SETTLED, name="a"))
    cluster.put(held("b"))
    assert run("status", "--exit-code").code == 3
    cluster.put(a_resource(STALLED, name="c"))
    assert run("status", "--exit-code").code == 4


@pytest.mark.parametrize("command", [["status", "wordcuont"], ["explain", "wordcuont"], ["status", "-w", "wordcuont"]])
def test_a_name_that_is_nearly_right_is_guessed(cluster: Cluster, run: Run, command: list[str]) -> None:
    cluster.put(held())
    ran = run(*command)
    assert (ran.code, ran.out) == (1, "")
    assert an_error(ran.err) == [
        "StreamApp demo/wordcuont",
        "it does not exist",
        "did you mean wordcount?",
    ]


def test_a_name_of_another_namespace_is_found_there(cluster: Cluster, run: Run) -> None:
    cluster.put(held("payments", **{"metadata.namespace": "prod"}))
    assert an_error(run("status", "payments").err)[2] == "it exists elsewhere: add --namespace prod"


def test_a_name_like_no_other_is_not_guessed(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    assert an_error(run("status", "zzz").err)[2] == "list them all with `kubectl streamapp status --all-namespaces`"


def test_no_streamapp_at_all_is_said(cluster: Cluster, run: Run) -> None:
    cluster.put(held("payments", **{"metadata.namespace": "prod"}))
    ran = run("status")
    assert (ran.code, ran.out) == (1, "")
    assert an_error(ran.err) == [
        "StreamApps",
        "there are none in namespace demo",
        "apply one, or list with --all-namespaces",
    ]
    cluster.do(lambda server: server.remove("streamapps", "prod", "payments"))
    assert "there are none in any namespace" in run("status", "-A").err


@pytest.mark.parametrize("command", [["status"], ["status", "wordcount"], ["explain", "wordcount"], ["status", "-w"]])
def test_a_cluster_without_the_definition_is_told_apart(cluster: Cluster, run: Run, command: list[str]) -> None:
    cluster.refuse(*NO_DEFINITION)
    ran = run(*command)
    assert ran.code == 1
    assert an_error(ran.err) == [
        f"API server {cluster.url} (context here)",
        "it does not serve streamapps of streamapp.dev/v1alpha1: the CustomResourceDefinition is not installed",
        "install it with `kubectl apply -f crds/streamapps.streamapp.dev.yaml`, or choose another cluster with "
        "--context",
    ]


def test_a_right_that_is_missing_is_named(cluster: Cluster, run: Run) -> None:
    message = 'streamapps.streamapp.dev is forbidden: User "me" cannot list resource "streamapps"'
    cluster.refuse(403, message)
    ran = run("status")
    assert ran.code == 1
    assert an_error(ran.err) == [
        "StreamApps of namespace demo",
        message,
        "ask for a Role with get, list and watch on streamapps.streamapp.dev",
    ]


def test_who_may_not_list_still_hears_that_there_is_no_such_streamapp(cluster: Cluster, run: Run) -> None:
    cluster.refuse(403, "forbidden", query="limit")
    assert an_error(run("status", "wordcount").err)[1] == "it does not exist"


def test_credentials_that_do_not_count_are_told_apart(cluster: Cluster, run: Run) -> None:
    cluster.refuse(401, "Unauthorized")
    assert an_error(run("status", "wordcount").err) == [
        f"API server {cluster.url} (context here)",
        "it rejects the credentials: Unauthorized",
        "log in to the cluster again, and check that `kubectl get streamapps` works with this context",
    ]


def test_a_server_that_is_not_there_is_named(cluster: Cluster, run: Run) -> None:
    cluster.write_kubeconfig("http://127.0.0.1:1")
    ran = run("status", "wordcount")
    assert ran.code == 1
    what, why, step = an_error(ran.err)
    assert what == "API server http://127.0.0.1:1 (context here)"
    assert "Connect call failed" in why
    assert step.startswith("check the address")


def test_what_a_server_says_cannot_steer_the_terminal(cluster: Cluster, run: Run) -> None:
    cluster.refuse(403, "no\x1b[2J\nway")
    assert "\x1b" not in run("status").err


def test_without_a_kubeconfig_it_says_how_to_name_one(
    cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert cluster.url
    monkeypatch.delenv("KUBECONFIG")
    ran = run("status")
    assert ran.code == 1
    assert an_error(ran.err) == [
        f"kubeconfig {tmp_path}/.kube/config",
        "there is no such file",
        "name one with --kubeconfig or KUBECONFIG",
    ]
    assert "kubeconfig /nowhere" in run("status", "--kubeconfig", "/nowhere").err


def test_a_context_that_is_not_there_is_told_with_those_that_are(cluster: Cluster, run: Run) -> None:
    assert an_error(run("status", "--context", "hear").err) == [
        f"kubeconfig {cluster.kubeconfig}",
        "it has no context hear",
        "choose one with --context: here",
    ]


def test_a_kubeconfig_that_is_none_is_told(cluster: Cluster, run: Run) -> None:
    cluster.kubeconfig.write_text("current-context: [")
    assert an_error(run("status").err)[0] == f"kubeconfig {cluster.kubeconfig}"
    cluster.kubeconfig.write_text("")
    assert an_error(run("status").err)[1] == "it has no current context"


def test_several_kubeconfigs_are_one(
    cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster.put(held())
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{cluster.kubeconfig}")
    assert "wordcount" in run("status").out


@pytest.mark.parametrize(
    "arguments", [["explain"], ["status", "-o", "xml"], ["status", "a", "b"], ["status", "-A", "-n", "x"], ["nonsense"]]
)
def test_a_wrong_command_line_is_usage(run: Run, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "Usage: kubectl streamapp" in ran.err


def test_help_and_version_need_nothing(run: Run) -> None:
    assert "with --exit-code" in run("--help").out
    assert "--watch" in run("status", "--help").out
    assert run("--version").out.startswith("kubectl-streamapp 0.")


def test_the_token_of_the_kubeconfig_is_sent_and_every_read_is_a_get(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    seen: list[tuple[str, str | None]] = []

    def look(request: Any) -> None:
        seen.append((request.method, request.headers.get("Authorization")))

    cluster.do(lambda server: setattr(server, "refuse", look))
    run("status", "wordcount")
    assert seen == [("GET", "Bearer secret")]
    assert cluster.do(lambda server: server.writes) == []


def test_members_of_the_example_are_those_that_are_shown(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    assert str(example.process_id(2)) in run("status", "wordcount").out
