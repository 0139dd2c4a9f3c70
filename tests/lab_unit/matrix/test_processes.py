"""Processes end with their block, and a JVM's tree of class loaders is read."""

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.matrix import processes
from lab.matrix.processes import LOOPBACK, free_ports, loader_in, started

TREE = """4711:
+-- <bootstrap>
      |
      |               Classes: java.lang.Object
      |                        java.lang.String
      |                        (2 classes)
      |
      +-- "platform", jdk.internal.loader.ClassLoaders$PlatformClassLoader
            |
            +-- "app", jdk.internal.loader.ClassLoaders$AppClassLoader
                  |
                  |               Classes: org.example.Main
                  |                        org.example.KafkaStreams$1
                  |                        (2 classes)
                  |
                  +-- io.example.FarLoader
                        |
                        |               Classes: org.example.Other
                        |                        org.example.KafkaStreams
                        |                        (2 classes)
"""


@pytest.mark.parametrize(
    ("class_name", "loader"),
    [
        ("java.lang.Object", "<bootstrap>"),
        ("org.example.Main", "jdk.internal.loader.ClassLoaders$AppClassLoader"),
        ("org.example.KafkaStreams", "io.example.FarLoader"),
        ("org.example.Kafka", ""),
    ],
)
def test_the_loader_of_a_class_is_the_branch_above_it(class_name: str, loader: str) -> None:
    assert loader_in(TREE, class_name) == loader


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_process_gets_its_environment_and_ends_with_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1m")
    code = "import os, time; print(os.environ.get('JAVA_TOOL_OPTIONS'), os.environ['MORE'], flush=True); time.sleep(60)"
    with started("it", [sys.executable, "-c", code], {"MORE": "yes"}, tmp_path / "log", tmp_path) as process:
        until = time.monotonic() + 60
        while not (tmp_path / "log").read_text():
            assert time.monotonic() < until
            time.sleep(0.02)
        process.require_life()
        pid = process.running.pid
        with pytest.raises(LabError, match="it: still runs after 0 s"):
            process.wait(0.05)
    assert (tmp_path / "log").read_text() == "None yes\n"
    assert not alive(pid)


def test_one_that_ignores_sigterm_is_killed_also_when_the_block_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.2)
    ready = tmp_path / "ready"
    code = f"import signal, time; signal.signal(15, signal.SIG_IGN); open({str(ready)!r}, 'w'); time.sleep(60)"

    def fail() -> int:
        with started("it", [sys.executable, "-c", code], {}, tmp_path / "log", tmp_path) as process:
            wait_for(ready)
            pids.append(process.running.pid)
            raise KeyboardInterrupt

    pids: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        fail()
    assert pids
    assert not alive(pids[0])
    assert pids[0] != os.getpid()


def test_one_that_has_ended_is_told_with_its_last_words(tmp_path: Path) -> None:
    code = "print('Exception: no broker\\n\\tat Main.main'); raise SystemExit(3)"
    with started("it", [sys.executable, "-c", code], {}, tmp_path / "log", tmp_path) as process:
        assert process.wait(60) == 3
        with pytest.raises(LabError) as raised:
            process.require_life()
    assert (raised.value.what, raised.value.why) == ("it: ended with exit code 3", "Exception: no broker")


def test_free_ports_are_different_and_can_be_bound() -> None:
    ports = free_ports(3)
    assert len(set(ports)) == 3
    for port in ports:
        socket.create_server((LOOPBACK, port)).close()
