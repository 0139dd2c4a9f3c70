"""Foreign tools are run to their end, told about, and never left behind."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.build import subprocesses
from lab.build.subprocesses import TAIL_LINES, ToolResult, fetch, run
from lab.settings import REPOSITORY


def test_output_and_errors_go_into_the_log_and_the_last_lines_into_the_outcome(tmp_path: Path) -> None:
    log, seen = tmp_path / "some" / "log", list[str]()
    outcome = run(["sh", "-c", "seq 70; echo oops >&2; exit 3"], log, each_line=seen.append)
    lines = [*map(str, range(1, 71)), "oops"]
    assert outcome == ToolResult(3, tuple(lines[-TAIL_LINES:]), log)
    assert (log.read_text().splitlines(), seen) == (lines, lines)


def test_the_reason_repeats_the_last_lines_and_names_the_log() -> None:
    outcome = ToolResult(2, ("one", "two"), Path("/cache/it/log"))
    assert outcome.why() == "one\n    two\n    (all of it: /cache/it/log)"


def test_the_reason_leaves_out_what_is_noise() -> None:
    outcome = ToolResult(2, ("the cause", "", "see --help", "see the manual"), Path("/cache/it/log"))
    assert outcome.why(noise="^see|^$") == "the cause\n    (all of it: /cache/it/log)"


def test_a_tool_that_said_nothing_is_explained_by_its_exit_code() -> None:
    outcome = ToolResult(-9, (), Path("/cache/it/log"))
    assert outcome.why() == "it ended with exit code -9 and said nothing\n    (all of it: /cache/it/log)"


def test_folder_and_environment_are_the_ones_that_were_given(tmp_path: Path) -> None:
    outcome = run(["sh", "-c", "pwd; echo $IT"], tmp_path / "log", folder=tmp_path, environment={"IT": "this"})
    assert outcome.last_lines == (str(tmp_path), "this")


@pytest.mark.parametrize(
    ("words", "tries"),
    [
        ("curl: (56) Recv failure: Connection reset by peer", 3),
        ("Could not transfer artifact: Connect timed out", 3),
        ("reading https://a.registry/it: 502 Bad Gateway", 3),
        ("no such host", 1),
        ("it does not compile", 1),
    ],
)
def test_a_registry_that_broke_off_is_asked_three_times_and_no_other_failure_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, tries: int
) -> None:
    monkeypatch.setattr(subprocesses, "PAUSE_SECONDS", 0.0)
    counts = f"echo one >>count; test $(wc -l <count) -ge 3 || {{ echo '{words}'; exit 1; }}"
    outcome = fetch(["sh", "-c", counts], tmp_path / "log", folder=tmp_path)
    assert (tmp_path / "count").read_text().split() == ["one"] * tries
    assert outcome.code == (0 if tries == 3 else 1)


@pytest.mark.parametrize("end_by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_tool_ends_with_the_process_that_started_it(tmp_path: Path, end_by: signal.Signals) -> None:
    code = (
        "import signal, sys; from pathlib import Path; from lab.build.subprocesses import run; "
        # Whoever starts the tests in the background of a shell has them ignore this signal, and all their children.
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        "run(['sh', '-c', 'echo $$ > pid; exec sleep 60'], Path('log'), folder=Path(sys.argv[1]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r}); {code}", tmp_path],
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
    ) as parent:
        pid = tmp_path / "pid"
        end = time.monotonic() + 60
        while not (pid.exists() and pid.read_text()):
            assert time.monotonic() < end
            time.sleep(0.01)
        tool = Path("/proc", pid.read_text().strip())
        assert tool.exists()
        parent.send_signal(end_by)
    while tool.exists() and " Z " not in (tool / "stat").read_text():
        assert time.monotonic() < end, "the tool outlived the process that started it"
        time.sleep(0.01)
