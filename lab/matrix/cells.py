"""What is tried: pairs of a launcher and a version, and what is expected of each. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from streamapp.core.facts.agent_reports import AsideKind


class Launcher(StrEnum):
    """How the application's JVM gets its classes."""

    PLAIN = "plain main"
    SPRING_BOOT = "Spring Boot fat jar"
    QUARKUS = "Quarkus fast-jar"
    WORD_COUNT = "WordCountDemo"
    """Kafka's own example on a plain class path: an application that nobody here wrote."""


JDK_JAVA_OPTIONS = "JDK_JAVA_OPTIONS"
JAVA_TOOL_OPTIONS = "JAVA_TOOL_OPTIONS"
OLDER, NEWER = "17", "25"
"""Of Java."""


@dataclass(frozen=True)
class Cell:
    """One trial."""

    launcher: Launcher
    streams: str
    """The version of kafka-streams and kafka-clients."""
    release: str = ""
    """The version of the framework, or of the jar with Kafka's examples; empty on plain main."""
    java: str = OLDER
    variable: str = JDK_JAVA_OPTIONS
    """What carries the agent into the JVM."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further environment of the application."""
    aside: AsideKind | None = None
    """Why the assignor must step aside; None: it must be at work, and the application is drained."""

    @property
    def name(self) -> str:
        """What tells it from all others, for a person and for `--only`."""
        launcher = f"{self.launcher} {self.release}".strip()
        special = f", {self.aside.value}" if self.aside else ""
        return f"{launcher}, Streams {self.streams}, Java {self.java}{special}"


_STICKY = "org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor"

CELLS = (
    *(Cell(Launcher.PLAIN, version) for version in ("3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1")),
    Cell(Launcher.PLAIN, "4.2.1", java=NEWER, variable=JAVA_TOOL_OPTIONS),
    Cell(Launcher.SPRING_BOOT, "3.9.2", "3.5.16"),
    Cell(Launcher.SPRING_BOOT, "4.2.1", "4.1.1", variable=JAVA_TOOL_OPTIONS),
    Cell(Launcher.QUARKUS, "3.9.2", "3.20.3"),
    Cell(Launcher.QUARKUS, "4.2.1", "3.34.3", variable=JAVA_TOOL_OPTIONS),
    Cell(Launcher.WORD_COUNT, "3.8.1", "3.8.0"),
    Cell(Launcher.WORD_COUNT, "4.0.2", "4.0.0"),
    Cell(Launcher.WORD_COUNT, "4.2.1", "4.2.0"),
    Cell(Launcher.PLAIN, "3.7.2", aside=AsideKind.OLDER_STREAMS),
    Cell(Launcher.PLAIN, "4.2.1", settings={"STREAMS_TASK_ASSIGNOR_CLASS": _STICKY}, aside=AsideKind.OWN_ASSIGNOR),
    Cell(Launcher.PLAIN, "4.2.1", settings={"STREAMS_GROUP_PROTOCOL": "streams"}, aside=AsideKind.STREAMS_PROTOCOL),
)
"""Every line of Kafka Streams that the assignor supports on plain main, every launcher on two of them, and those where
it must keep its hands off. The newest patch of each line; examples are published for the first releases only."""
