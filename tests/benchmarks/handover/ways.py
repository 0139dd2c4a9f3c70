"""The ways that one run compares: an application, a guarantee, an agent and settings. Builds what they need."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lab.build.cache import Cache
from lab.build.launchers import spring_boot
from lab.build.maven import AGENT_JAR, agent_jar, package
from lab.build.plan import COUNTER
from lab.build.toolchains import java_home
from lab.settings import Settings
from tests.benchmarks.handover.group import Way

_JAVA = ("-Xmx192m", "-XX:+UseSerialGC")
_MAIN = "dev.streamapp.examples.counter.Counter"
_SPRING_BOOT, _STREAMS = "4.1.1", "4.2.1"
_EXACTLY_ONCE = MappingProxyType({"EXACTLY_ONCE": "true"})
APPLICATIONS: Mapping[str, Mapping[str, str]] = {
    "at-least-once": {},
    "exactly-once": _EXACTLY_ONCE,
    "spring-boot": {},
}
"""By name, what the environment says: the counter with both guarantees, and a Spring Boot application."""


def ways(lab: Settings, names: Sequence[str], agents: Sequence[str], settings: Sequence[str]) -> list[Way]:
    """Give each application with each agent, `NAME=JAR`, and all of that again with each `NAME:VARIABLE=VALUE`."""
    cache = Cache(lab.cache)
    jars = agents or (f"={agent_jar(lab.versions, cache) / AGENT_JAR}",)
    found = []
    plain: dict[str, dict[str, str]] = {"": {}}
    variants = plain | dict(map(_setting, settings))
    for name in names or tuple(APPLICATIONS):
        command, own = _command(name, lab, cache), APPLICATIONS[name]
        for agent in jars:
            word, _, jar = agent.partition("=")
            for added, more in variants.items():
                way = "-".join(filter(None, (name, word, added)))
                found.append(Way(way, Path(jar).absolute(), command, {**own, **more}))
    return found


def _setting(text: str) -> tuple[str, dict[str, str]]:
    word, _, assignment = text.partition(":")
    variable, _, value = assignment.partition("=")
    return word, {variable: value}


def _command(name: str, lab: Settings, cache: Cache) -> tuple[str, ...]:
    java = (str(java_home(lab.versions) / "bin" / "java"), *_JAVA)
    if name == "spring-boot":
        return (*java, "-jar", str(spring_boot(_SPRING_BOOT, _STREAMS, lab.versions, cache)))
    jars = package(COUNTER, lab.versions, cache)
    return (*java, "-cp", f"{jars}/counter.jar:{jars}/lib/*", _MAIN)
