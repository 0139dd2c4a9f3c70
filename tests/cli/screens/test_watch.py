"""`status --watch`: what is shown of changes, interruptions and the end, in a pipe, as documents and on a terminal."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from lab.settings import REPOSITORY
from streamapp.cli.screens.live import WatchState, frame
from streamapp.kube.client import watch
from streamapp.kube.client.errors import UnavailableError
from streamapp.kube.client.kinds import Key
from streamapp.kube.client.watch import ChangeEvent, DeleteEvent, ListEvent, WatchInterrupted
from tests.builders import NOW, a_snapshot
from tests.cli.cluster import Cluster
from tests.cli.conftest import Run
from tests.cli.showing import Json, a_resource, one_line, shown
from tests.statuses import answer, held_status

KEY = Key("demo", "wordcount")
SETTLED = a_resource(answer(a_snapshot(desired=3, record=None)))
LOST = WatchInterrupted(UnavailableError("WATCH streamapps", "Connection\x1b reset", "wait"), 4)


def held(name: str = "wordcount") -> Json:
    return a_resource(held_status(), {"spec.replicas": 2}, name=name)


def seen(state: WatchState, *, later: float = 0, **console: int) -> str:
    return "\n".join(shown(frame(state, NOW + timedelta(seconds=later)), **console))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once."""
    monkeypatch.setattr(watch, "PAUSES", (0.0,))


@pytest.mark.usefixtures("quick")
def test_in_a_pipe_every_change_is_a_block_and_deletion_is_the_end(cluster: Cluster, run: Run) -> None:
    cluster.put(held())

    def change() -> None:
        cluster.put(SETTLED)
        cluster.remove("wordcount")

    cluster.when_watched(change)
    ran = run("status", "wordcount", "--watch")
    assert (ran.code, ran.err) == (0, "")
    titles = [line for line in ran.out.splitlines() if line.startswith("demo/wordcount")]
    assert titles == [
        "demo/wordcount  HELD  LearnersCatchingUp",
        "demo/wordcount  SETTLED  Converged",
        "demo/wordcount was deleted.",
    ]


@pytest.mark.usefixtures("quick")
def test_as_json_every_change_is_a_line(cluster: Cluster, run: Run) -> None:
    cluster.put(held())

    def change() -> None:
        cluster.put(SETTLED)
        cluster.remove("wordcount")

    cluster.when_watched(change)
    ran = run("status", "wordcount", "--watch", "-o", "json", "--exit-code")
    documents = [json.loads(line) for line in ran.out.splitlines()]
    assert [document["state"] for document in documents] == ["held", "settled", "deleted"]
    assert ran.code == 0


@pytest.mark.usefixtures("quick")
def test_an_interruption_is_said_and_a_deletion_meanwhile_is_seen(cluster: Cluster, run: Run) -> None:
    cluster.put(held())

    def vanish() -> None:
        cluster.remove("wordcount")
        cluster.do(lambda server: server.cut_watches())

    def break_off() -> None:
        cluster.do(lambda server: server.cut_watches())

    cluster.when_watched(break_off, vanish)
    ran = run("status", "wordcount", "--watch")
    assert ran.code == 0
    assert "connection lost: WATCH /apis/streamapp.dev/v1alpha1/namespaces/demo/streamapps: " in ran.err
    assert ran.out.splitlines()[-1] == "demo/wordcount was deleted."


@pytest.mark.parametrize("order", [signal.SIGINT, signal.SIGTERM])
def test_an_order_to_stop_is_the_ordinary_end(cluster: Cluster, run: Run, order: signal.Signals) -> None:
    cluster.put(held())
    cluster.when_watched(lambda: os.kill(os.getpid(), order))
    ran = run("status", "wordcount", "--watch", "--exit-code")
    assert (ran.code, ran.err) == (3, "")


def test_a_picture_ages_between_news() -> None:
    state = WatchState(key=KEY)
    assert seen(state) == "waiting for the API server"
    state.update(ListEvent({KEY: held()}), NOW)
    assert "held for     1m, since" in seen(state)
    assert "held for     1m9s, since" in seen(state, later=9)
    assert seen(state, later=9).splitlines()[-1] == "watching, last update 9s ago; Ctrl-C ends"


def test_an_interruption_stands_below_the_last_picture_until_something_is_heard() -> None:
    state = WatchState(key=KEY)
    state.update(ListEvent({KEY: held()}), NOW)
    state.update(LOST, NOW + timedelta(seconds=10))
    state.update(LOST, NOW + timedelta(seconds=14))
    text = seen(state, later=16, width=120)
    assert "HELD" in text
    assert text.splitlines()[-1] == (
        "connection lost for 6s: Connection\ufffd reset; trying again in 2s; last update 16s ago"
    )
    state.update(ChangeEvent(KEY, SETTLED), NOW + timedelta(seconds=17))
    assert seen(state, later=18).splitlines()[-1].startswith("watching, last update 1s ago")


def test_one_that_is_deleted_is_over_and_several_never_are() -> None:
    state = WatchState(key=KEY)
    assert not state.is_over
    ends = []
    for news in (ListEvent({KEY: held()}), DeleteEvent(KEY)):
        state.update(news, NOW)
        ends.append(state.is_over)
    assert ends == [False, True]
    several = WatchState(key=None)
    several.update(ListEvent({}), NOW)
    assert not several.is_over
    assert seen(several).splitlines()[0] == "There are no StreamApps here."


def test_several_are_shown_as_the_overview() -> None:
    state = WatchState(key=None)
    state.update(ListEvent({KEY: held(), Key("demo", "a"): a_resource(None, name="a")}), NOW)
    assert [line.split()[0] for line in seen(state).splitlines()[:3]] == ["name", "a", "wordcount"]


@pytest.mark.parametrize("height", [27, 30, 40])
def test_two_hundred_pods_leave_room_for_everything_else_on_a_small_terminal(height: int) -> None:
    resource = held()
    resource["status"] |= {"statefulSetReplicas": 200, "replicas": 200}
    resource["status"]["members"] = [{"ordinal": number, "active": 4, "learners": 2} for number in range(200)]
    state = WatchState(key=KEY)
    state.update(ListEvent({KEY: resource}), NOW)
    lines = seen(state, width=80, height=height).splitlines()
    assert len(lines) <= height
    assert lines[-1].startswith("watching")
    assert "more pods: " in one_line("\n".join(lines))


def test_what_does_not_fit_is_said() -> None:
    state = WatchState(key=KEY)
    state.update(ListEvent({KEY: held()}), NOW)
    lines = seen(state, width=80, height=10).splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("demo/wordcount  HELD")
    assert re.fullmatch(r"\d+ more lines do not fit into this terminal", lines[-3])
    assert lines[-1].startswith("watching")


def test_on_a_high_terminal_the_parts_stand_apart() -> None:
    state = WatchState(key=KEY)
    state.update(ListEvent({KEY: held()}), NOW)
    high, low = (seen(state, width=80, height=height).splitlines() for height in (40, 26))
    assert (high.count(""), low.count("")) == (5, 1)
    assert [line for line in high if line] == [line for line in low if line]


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, cluster: Cluster, *arguments: str) -> None:
        main, self._side = pty.openpty()
        self._main = main
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "50"}
        environment["PYTHONPATH"] = str(REPOSITORY / "operator")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streamapp.cli", *arguments, "--kubeconfig", str(cluster.kubeconfig)],
            stdin=self._side,
            stdout=self._side,
            stderr=self._side,
            env=environment,
        )
        os.close(self._side)
        self.text = ""

    def read_until(self, words: str) -> None:
        """Read what it writes until these words come."""
        begin = len(self.text)
        assert self.process.poll() is None, self.text
        while words not in self.text[begin:]:
            self.text += os.read(self._main, 65536).decode()

    def read_to_the_end(self) -> int:
        """Read the rest; give the exit code."""
        try:
            while piece := os.read(self._main, 65536):
                self.text += piece.decode()
        except OSError:
            pass  # how a terminal says that the other side is gone
        os.close(self._main)
        return self.process.wait(120)


@pytest.fixture
def on_a_terminal(cluster: Cluster) -> Iterator[Callable[..., Terminal]]:
    """Give what starts the command, and end what a test has left running."""
    started: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        started.append(Terminal(cluster, *arguments))
        return started[-1]

    yield start
    for terminal in started:
        terminal.process.kill()
        terminal.process.wait()


@pytest.mark.slow
@pytest.mark.timeout(180)  # a process of its own, on a machine that may have much else to do
def test_on_a_terminal_it_is_a_live_screen_that_leaves_its_last_picture(
    cluster: Cluster, on_a_terminal: Callable[..., Terminal]
) -> None:
    cluster.put(held())
    terminal = on_a_terminal("status", "wordcount", "--watch")
    terminal.read_until("HELD")
    terminal.read_until("watching, last update")
    cluster.put(SETTLED)
    terminal.read_until("SETTLED")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.read_to_the_end() == 0
    assert "\x1b[?1049h" in terminal.text
    left = terminal.text.rsplit("\x1b[?1049l", 1)[1]
    assert "SETTLED" in left
    assert "Ctrl-C ends" not in left
    assert "Traceback" not in left
