"""`unhold` and `override`: the hold that is meant, what is shown before the question, and that no other hold ends."""

import fcntl
import os
import pty
import subprocess
import sys
import termios
from contextlib import suppress
from typing import Any

import pytest

from lab.settings import REPOSITORY
from tests.builders import a_snapshot, a_wish
from tests.cli.cluster import Cluster
from tests.cli.conftest import Run
from tests.cli.showing import Json, a_resource, one_line
from tests.kube.api_server import ApiServer
from tests.statuses import answer, held_status

HOLD, OVERRIDE = "streamapp.dev/hold", "streamapp.dev/override"


def held(**changes: Any) -> Json:
    return a_resource(held_status(), {"spec.replicas": 2, **changes})


def annotations(cluster: Cluster) -> Json:
    found: Json = cluster.get("wordcount")["metadata"].get("annotations", {})
    return found


def test_it_names_what_would_be_lost_and_writes_exactly_the_hold_that_was_shown(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    ran = run("override", "wordcount", "--reason", "the disk is full", "--yes")
    assert (ran.code, ran.err) == (0, "")
    text = one_line(ran.out)
    assert "Hold h-1 keeps pod 2. With an override, the pod leaves without caught-up copies of the tasks." in text
    assert "2 tasks have no caught-up copy on a remaining pod: their users wait until the state is restored" in text
    assert "Task 0_0 has its best copy on pod 1, 50,000 records behind." in text
    assert ran.out.splitlines()[-1] == (
        "demo/wordcount: hold h-1 is overridden (the disk is full), for this scale-down only."
    )
    assert annotations(cluster) == {OVERRIDE: "h-1 the disk is full"}
    again = run("override", "wordcount", "--reason", "again")
    assert (again.code, again.out) == (0, "demo/wordcount: hold h-1 is already overridden; nothing was written.\n")
    assert len(cluster.written) == 1


def test_without_a_yes_and_a_terminal_nothing_is_overridden(
    cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(held())
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    ran = run("override", "wordcount", "--reason", "why")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "error: StreamApp demo/wordcount",
        "cause: this needs a confirmation, and there is no terminal to ask on",
        "next:  add --yes",
    ]
    assert cluster.written == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "code", "annotation"),
    [("y\n", 0, {OVERRIDE: "h-1 why"}), ("n\n", 1, {}), ("\n", 1, {}), ("\x03", 130, {})],
)
@pytest.mark.timeout(180)  # a process of its own, on a machine that may have much else to do
def test_on_a_terminal_it_asks(cluster: Cluster, typed: str, code: int, annotation: Json) -> None:
    cluster.put(held())
    main, side = pty.openpty()
    command = [sys.executable, "-m", "streamapp.cli", "override", "wordcount", "--reason", "why"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(REPOSITORY / "operator")}
    process = subprocess.Popen(
        [*command, "--kubeconfig", str(cluster.kubeconfig)],
        stdin=side,
        stdout=side,
        stderr=side,
        env=environment,
        start_new_session=True,
        preexec_fn=own_the_terminal,  # noqa: PLW1509 (so that Ctrl-C reaches it; no threads are begun before it)
    )
    os.close(side)
    try:
        said = read_until(main, "Override hold h-1 of demo/wordcount? [y/N]")
        assert "2 tasks have no caught-up copy" in one_line(said)
        assert ended_after(typed, main, process) == code
    finally:
        process.kill()
        process.wait()
        os.close(main)
    assert annotations(cluster) == annotation


def read_until(terminal: int, words: str) -> str:
    """What was written up to these words."""
    said = ""
    while words not in said:
        said += os.read(terminal, 65536).decode()
    return said


def ended_after(typed: str, terminal: int, process: "subprocess.Popen[bytes]") -> int:
    """The exit code after these keys, which are typed again every two seconds as a person would.

    Python loses a Ctrl-C that comes in the moment between its last look at signals and its wait for a line.
    """
    for _ in range(30):
        os.write(terminal, typed.encode())
        with suppress(subprocess.TimeoutExpired):
            return process.wait(2)
    return process.wait(2)


def own_the_terminal() -> None:
    """Make standard input the terminal whose Ctrl-C this process gets."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_unhold_ends_the_hold_of_a_user_and_nothing_else(cluster: Cluster, run: Run) -> None:
    cluster.put(held(**{"metadata.annotations": {HOLD: "disks", "team": "words"}}))
    ran = run("unhold", "wordcount")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "demo/wordcount is no longer held by a user. Before, it was held (disks).",
        "Pods leave again once their tasks have caught-up copies on the remaining pods.",
    ]
    assert annotations(cluster) == {"team": "words"}


def test_unhold_of_a_hold_of_the_operator_names_override(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    ran = run("unhold", "wordcount")
    assert ran.code == 1
    assert "no user holds it: the operator holds the scale-down until the tasks are covered" in ran.err
    assert "`kubectl streamapp override wordcount --namespace demo --reason '<why>'`" in ran.err
    assert cluster.written == []


def test_override_of_a_users_hold_names_unhold(cluster: Cluster, run: Run) -> None:
    cluster.put(held(**{"metadata.annotations": {HOLD: "disks"}}))
    ran = run("override", "wordcount", "--reason", "why", "--yes")
    assert ran.code == 1
    assert "a user holds it (disks), and an override does not end that hold" in ran.err
    assert "`kubectl streamapp unhold wordcount --namespace demo`; add `--hold-id h-1` to override" in ran.err
    assert cluster.written == []


def test_a_hold_that_is_named_is_overridden_beside_the_hold_of_a_user(cluster: Cluster, run: Run) -> None:
    cluster.put(held(**{"metadata.annotations": {HOLD: "disks"}}))
    ran = run("override", "wordcount", "--hold-id", "h-1", "--reason", "why", "--yes")
    assert ran.code == 0
    assert "The scale-down still waits while a user holds it (disks)." in one_line(ran.out)
    assert annotations(cluster) == {HOLD: "disks", OVERRIDE: "h-1 why"}


def test_another_hold_than_the_one_there_is_stays(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    ran = run("override", "wordcount", "--hold-id", "h-0", "--reason", "why", "--yes")
    assert ran.code == 1
    assert "it has no hold h-0: the present hold is h-1" in ran.err
    cluster.put(a_resource(answer(a_snapshot(desired=3, record=None))))
    ran = run("override", "wordcount", "--hold-id", "h-0", "--reason", "why", "--yes")
    assert ran.code == 1
    assert "it has no hold h-0: there is none" in ran.err
    assert cluster.written == []


def test_where_nothing_is_held_that_is_said(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(answer(a_snapshot(desired=3, record=None))))
    ran = run("override", "wordcount", "--reason", "why", "-o", "json")
    assert (ran.code, ran.document["written"]) == (0, False)
    assert ran.document["why"] == "no scale-down is held"
    ran = run("unhold", "wordcount")
    assert (ran.code, ran.out) == (0, "demo/wordcount: no user holds it; nothing was written.\n")


def test_while_the_wish_is_too_young_it_is_said_when_it_will_not_be(cluster: Cluster, run: Run) -> None:
    cluster.put(a_resource(answer(a_snapshot(app={"desired": a_wish(2, (10, 2))}, record=None)), {"spec.replicas": 2}))
    ran = run("override", "wordcount", "--reason", "why", "-o", "json")
    assert (ran.code, ran.document["written"]) == (0, False)
    assert "only the stabilization window holds it" in ran.document["why"]
    assert "It must last for 30 s, which is until" in ran.document["why"]
    assert "scaleDown.stabilizationWindow" in ran.document["why"]


def test_an_override_has_a_reason(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    ran = run("override", "wordcount", "--yes")
    assert ran.code == 2
    assert "Missing option '--reason'" in ran.err
    assert cluster.written == []


def test_a_hold_that_has_become_another_is_not_overridden(cluster: Cluster, run: Run) -> None:
    cluster.put(held())

    def begin_anew(server: ApiServer) -> None:
        other = held()
        other["status"]["scaleDown"]["holdId"] = "h-2"
        server.put("streamapps", other, as_is=True)

    cluster.before_write(begin_anew)
    ran = run("override", "wordcount", "--reason", "why", "--yes")
    assert ran.code == 1
    assert "the hold changed meanwhile, or keeps more pods now; nothing was written" in ran.err
    assert annotations(cluster) == {}


@pytest.mark.parametrize(("path", "value"), [(("status", "scaleDown", "target"), 1), (("spec", "replicas"), 1)])
def test_a_hold_that_has_come_to_keep_more_pods_than_were_shown_is_not_overridden(
    cluster: Cluster, run: Run, path: tuple[str, ...], value: int
) -> None:
    cluster.put(held())

    def go_further(server: ApiServer) -> None:
        other = held()
        inner = other
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value
        server.put("streamapps", other, as_is=True)

    cluster.before_write(go_further)
    ran = run("override", "wordcount", "--reason", "why", "--yes")
    assert ran.code == 1
    assert "or keeps more pods now; nothing was written" in ran.err
    assert annotations(cluster) == {}


def test_a_persons_hold_is_all_that_keeps_pods_whose_own_hold_was_overridden_and_so_it_is_asked(
    cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {HOLD: "disks", OVERRIDE: "h-1 why"}
    cluster.put(held(**{"metadata.annotations": said}))
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    ran = run("unhold", "wordcount")
    assert ran.code == 1
    assert "With an override, the pod leaves without caught-up copies of the tasks." in one_line(ran.out)
    assert "still waits" not in one_line(ran.out)
    assert annotations(cluster) == said
    ran = run("unhold", "wordcount", "--yes")
    assert ran.out.splitlines()[-1] == "Hold h-1 is already overridden: its pods leave without caught-up copies."
    assert annotations(cluster) == {OVERRIDE: "h-1 why"}


def test_a_persons_hold_that_has_become_another_is_not_lifted(cluster: Cluster, run: Run) -> None:
    cluster.put(held(**{"metadata.annotations": {HOLD: "disks"}}))

    def hold_anew(server: ApiServer) -> None:
        server.put("streamapps", held(**{"metadata.annotations": {HOLD: "night"}}), as_is=True)

    cluster.before_write(hold_anew)
    assert run("unhold", "wordcount").code == 1
    assert annotations(cluster) == {HOLD: "night"}


def test_what_an_override_does_not_override_is_said(cluster: Cluster, run: Run) -> None:
    resource = held()
    resource["status"]["scaleDown"]["reason"] = "GroupRebalancing"
    cluster.put(resource)
    text = one_line(run("override", "wordcount", "--reason", "why", "--yes").out)
    assert "An override does not skip the present reason (GroupRebalancing)" in text


def test_the_document_stands_alone(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    ran = run("override", "wordcount", "--reason", "why", "--yes", "-o", "json")
    assert ran.document["override"] == "h-1"
    assert ran.document["reason"] == "why"
    assert ran.document["costs"][0].startswith("Hold h-1 keeps pod 2.")
    assert "Hold h-1 keeps pod 2." in ran.err
