"""What `conformance` runs in the image of the counter, against a real broker over TLS: topics, load, waits, removal.

The client properties lie in a folder with a file for each, as the kubelet mounts a Secret.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.build import bases, maven
from lab.build.cache import Cache
from lab.build.plan import COUNTER
from lab.matrix.processes import Process, started
from lab.settings import Settings
from streamapp.cli.conformance.manifests import Setup
from streamapp.cli.conformance.waits import Wait, read_waits, worst_seconds
from tests.brokers.secured import ANSWER_SECONDS, Cluster

pytestmark = [pytest.mark.brokers, pytest.mark.timeout(400)]

MAIN = "dev.streamapp.examples.counter"
DOWN_SECONDS = 4.0
SETUP = Setup(name="conformance-1", namespace="n", image="i", bootstrap_servers="")
PRELOADED, STEADY = 600, 1500


@dataclass(frozen=True)
class Image:
    """The jars of the image, and the broker that they use."""

    folder: Path
    java: Path
    jars: Path
    servers: str
    properties: dict[str, str]

    @contextmanager
    def running(self, name: str, main: str, *arguments: str) -> Iterator[Process]:
        environment = {**SETUP.environment, "BOOTSTRAP_SERVERS": self.servers, "STATE_DIR": str(self.folder / "state")}
        environment |= {f"STREAMS_{key.upper().replace('.', '_')}": value for key, value in self.properties.items()}
        classes = f"{self.jars / 'counter.jar'}:{self.jars / 'lib'}/*"
        command = [str(self.java / "bin" / "java"), "-Xmx128m", "-XX:+UseSerialGC", "-cp", classes, f"{MAIN}.{main}"]
        with started(name, [*command, *arguments], environment, self.folder / f"{name}.log") as process:
            yield process

    @contextmanager
    def load(self, command: str, *arguments: str) -> Iterator[Process]:
        config = ("--command-config", str(self.folder / "client"))
        with self.running(command, "Load", command, *arguments, *config) as process:
            yield process

    def done(self, command: str, *arguments: str) -> str:
        """Run a command to its end; give what it said."""
        with self.load(command, *arguments) as process:
            assert process.wait(60) == 0, process.last_words()
        return process.log.read_text()


@pytest.fixture
def image(cluster: Cluster, tmp_path: Path) -> Image:
    settings = Settings.from_environment()
    cache = Cache(settings.cache)
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": cluster.authority.pem,
    }
    (tmp_path / "client").mkdir()
    for name, value in properties.items():
        (tmp_path / "client" / name).write_text(f"{value}\n")
    java = bases.java_runtime(settings.versions, cache)
    jars = maven.package(COUNTER, settings.versions, cache)
    return Image(tmp_path, java, jars, cluster.at("TLS"), properties)


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def topics(cluster: Cluster) -> list[str]:
    return sorted(name for name in cluster.admin.list_topics(timeout=ANSWER_SECONDS).topics if SETUP.name in name)


def waits(meter: Process) -> tuple[Wait, ...]:
    meter.require_life()
    return read_waits(meter.log.read_bytes())


def test_an_outage_is_measured_no_record_is_lost_and_the_topics_are_removed(cluster: Cluster, image: Image) -> None:
    image.done("topics", "--partitions=6", "--replication-factor=-1")
    image.done("preload", f"--records={PRELOADED}", f"--keys={PRELOADED}")
    with image.load("waits") as meter:
        with image.running("first", "Counter") as first:
            until(lambda: bool(waits(meter)) and waits(meter)[-1].answered == PRELOADED)
            with image.load("steady", "--rate=100", f"--keys={PRELOADED}", f"--duration={STEADY // 100}s") as steady:
                until(lambda: waits(meter)[-1].answered > PRELOADED + 100)
                since = waits(meter)[-1].clock_ms
                first.terminate()
                first.wait(30)
                time.sleep(DOWN_SECONDS)
                with image.running("second", "Counter"):
                    assert steady.wait(60) == 0
                    until(lambda: waits(meter)[-1].answered == PRELOADED + STEADY, 90)
        worst = worst_seconds(waits(meter), since)
        assert worst is not None
        assert DOWN_SECONDS <= worst < 90
        assert waits(meter)[-1].passed == 0
    assert len(topics(cluster)) == 3
    said = image.done("remove")
    assert "remove: 3 topics: conformance-1-counts-changelog, conformance-1-input, conformance-1-output" in said
    until(lambda: topics(cluster) == [])
    assert "remove: 0 topics" in image.done("remove")
