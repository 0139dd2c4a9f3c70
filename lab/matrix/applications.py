"""How each kind of application is started: command line and environment of one process, and what its tasks are."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.build import bases, launchers
from lab.build.cache import Cache
from lab.matrix.cells import NEWER, Cell, Launcher
from lab.settings import Versions

_MEMORY = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_COUNTER = "dev.streamapp.examples.counter.Counter"
_WORD_COUNT = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


@dataclass(frozen=True)
class Names:
    """What one application is called in Kafka."""

    application_id: str
    input_topic: str
    output_topic: str

    @classmethod
    def of(cls, launcher: Launcher, application_id: str) -> "Names":
        """Give the names; those of WordCountDemo's topics are written in its code."""
        if launcher is Launcher.WORD_COUNT:
            return cls(application_id, "streams-plaintext-input", "streams-wordcount-output")
        return cls(application_id, f"{application_id}-input", f"{application_id}-output")


@dataclass(frozen=True)
class Application:
    """Everything that the processes of one application have in common."""

    cell: Cell
    names: Names
    java: Path
    """The folder of the runtime."""
    starting: tuple[str, ...]
    """What follows `java` and its memory options: the class path or the jar."""

    @property
    def stateful(self) -> int:
        """The sub-topology whose tasks have state; WordCountDemo counts behind a repartition topic."""
        return 1 if self.cell.launcher is Launcher.WORD_COUNT else 0

    def command(self, folder: Path) -> list[str]:
        """Give the command line of one process, whose own folder this is."""
        arguments = [str(folder / "streams.properties")] if self.cell.launcher is Launcher.WORD_COUNT else []
        return [str(self.java / "bin" / "java"), *_MEMORY, _QUIET, *self.starting, *arguments]

    def environment(self, bootstrap: str, folder: Path) -> dict[str, str]:
        """Give what one process is told; its state lies in its own folder."""
        return {
            "BOOTSTRAP_SERVERS": bootstrap,
            "APPLICATION_ID": self.names.application_id,
            "INPUT_TOPIC": self.names.input_topic,
            "OUTPUT_TOPIC": self.names.output_topic,
            "STATE_DIR": str(folder / "state"),
            **self.cell.settings,
        }

    def files(self, bootstrap: str, folder: Path) -> Mapping[str, str]:
        """Give the files that have to lie in a process's folder before it starts."""
        if self.cell.launcher is not Launcher.WORD_COUNT:
            return {}
        lines = {
            "application.id": self.names.application_id,
            "bootstrap.servers": bootstrap,
            "state.dir": str(folder / "state"),
        }
        return {"streams.properties": "".join(f"{name}={value}\n" for name, value in lines.items())}


def build(cell: Cell, application_id: str, versions: Versions, cache: Cache) -> Application:
    """Build what the cell runs, or find it in the cache; a LabError says what cannot be built."""
    java = launchers.other_java(NEWER, cache) if cell.java == NEWER else bases.java_runtime(versions, cache)
    starting = _starting(cell, versions, cache)
    return Application(cell, Names.of(cell.launcher, application_id), java, starting)


def _starting(cell: Cell, versions: Versions, cache: Cache) -> tuple[str, ...]:
    if cell.launcher is Launcher.PLAIN:
        return ("-cp", _class_path(launchers.plain(cell.streams, versions, cache)), _COUNTER)
    if cell.launcher is Launcher.WORD_COUNT:
        return ("-cp", _class_path(launchers.word_count(cell.release, cell.streams, versions, cache)), _WORD_COUNT)
    jar = launchers.spring_boot if cell.launcher is Launcher.SPRING_BOOT else launchers.quarkus
    return ("-jar", str(jar(cell.release, cell.streams, versions, cache)))


def _class_path(places: list[Path]) -> str:
    return ":".join(map(str, places))
