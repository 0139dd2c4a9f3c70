"""How each kind of application is started."""

from pathlib import Path

import pytest

from lab.build import bases, launchers
from lab.build.cache import Cache
from lab.matrix import applications
from lab.matrix.applications import Application
from lab.matrix.cells import NEWER, Cell, Launcher
from lab.settings import Versions

FOLDER = Path("/run/process-0")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cache:
    """Give a cache whose builders give the names of what they would build: Maven is not run in unit tests."""
    monkeypatch.setattr(bases, "java_runtime", lambda *_: Path("/java17"))
    monkeypatch.setattr(launchers, "other_java", lambda version, _: Path(f"/java{version}"))
    monkeypatch.setattr(launchers, "plain", lambda streams, *_: [Path("counter.jar"), Path(f"/lib-{streams}/*")])
    monkeypatch.setattr(launchers, "word_count", lambda own, streams, *_: [Path(f"/{own}-{streams}/*")])
    for name in ("spring_boot", "quarkus"):
        monkeypatch.setattr(launchers, name, lambda own, streams, *_, name=name: Path(f"/{name}-{own}-{streams}.jar"))
    return Cache(tmp_path)


def build(cell: Cell, cache: Cache) -> Application:
    return applications.build(cell, "matrix-1", Versions.read(), cache)


@pytest.mark.parametrize(
    ("cell", "started"),
    [
        (Cell(Launcher.PLAIN, "3.8.1"), ["-cp", "counter.jar:/lib-3.8.1/*", "dev.streamapp.examples.counter.Counter"]),
        (Cell(Launcher.SPRING_BOOT, "3.9.2", "3.5"), ["-jar", "/spring_boot-3.5-3.9.2.jar"]),
        (Cell(Launcher.QUARKUS, "3.9.2", "3.20"), ["-jar", "/quarkus-3.20-3.9.2.jar"]),
        (
            Cell(Launcher.WORD_COUNT, "4.0.2", "4.0.0"),
            [
                *("-cp", "/4.0.0-4.0.2/*", "org.apache.kafka.streams.examples.wordcount.WordCountDemo"),
                str(FOLDER / "streams.properties"),
            ],
        ),
    ],
)
def test_command_lines(cell: Cell, started: list[str], built: Cache) -> None:
    command = build(cell, built).command(FOLDER)
    assert command[0] == "/java17/bin/java"
    assert command[-len(started) :] == started


def test_a_newer_java_is_another_runtime(built: Cache) -> None:
    assert build(Cell(Launcher.PLAIN, "4.2.1", java=NEWER), built).command(FOLDER)[0] == "/java25/bin/java"


def test_an_application_is_told_its_names_and_the_cells_settings(built: Cache) -> None:
    application = build(Cell(Launcher.PLAIN, "4.2.1", settings={"STREAMS_X": "y"}), built)
    environment = application.environment("127.0.0.1:1", FOLDER)
    assert (environment["APPLICATION_ID"], environment["INPUT_TOPIC"]) == ("matrix-1", "matrix-1-input")
    assert (environment["STREAMS_X"], environment["STATE_DIR"]) == ("y", str(FOLDER / "state"))
    assert (application.files("127.0.0.1:1", FOLDER), application.stateful) == ({}, 0)


def test_word_count_is_told_by_a_file_and_counts_in_its_second_sub_topology(built: Cache) -> None:
    application = build(Cell(Launcher.WORD_COUNT, "4.0.2", "4.0.0"), built)
    (text,) = application.files("127.0.0.1:1", FOLDER).values()
    assert text.splitlines() == [
        "application.id=matrix-1",
        "bootstrap.servers=127.0.0.1:1",
        f"state.dir={FOLDER / 'state'}",
    ]
    assert (application.names.input_topic, application.stateful) == ("streams-plaintext-input", 1)
