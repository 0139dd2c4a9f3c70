"""A real Spark standalone cluster on loopback addresses: a master and two workers of one core each.

They run from a virtual environment into which the project's wheel is installed as a user would install it.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from lab.settings import REPOSITORY

MASTER, WORKERS = "127.0.0.1", ("127.0.0.2", "127.0.0.3")
UP_SECONDS = 240
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def install(place: Path) -> Path:
    """The project's wheel with the extra `analytics`, in the locked versions; gives the folder of its programs."""
    uv = ["uv", "--quiet"]
    subprocess.run([*uv, "build", "--wheel", "--out-dir", str(place / "dist"), str(REPOSITORY)], check=True)
    (wheel,) = (place / "dist").glob("*.whl")
    locked = place / "locked.txt"
    export = ["export", "--frozen", "--no-default-groups", "--no-emit-project", "--extra", "analytics"]
    subprocess.run([*uv, *export, "--output-file", str(locked)], cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*uv, "venv", "--python", sys.executable, str(place / "venv")], check=True)
    pip = [*uv, "pip", "install", "--python", str(place / "venv")]
    subprocess.run([*pip, "--require-hashes", "--requirements", str(locked)], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    subprocess.run([*uv, "pip", "check", "--python", str(place / "venv")], check=True, capture_output=True)
    return place / "venv" / "bin"


def environment(programs: Path, **more: str) -> dict[str, str]:
    """What a user's shell has, and nothing of this project; a Python that workers started would not be found."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME", "LANG") if name in os.environ}
    kept["SPARK_LOCAL_IP"] = MASTER
    python = {"PYSPARK_PYTHON": "/nowhere/python", "PYSPARK_DRIVER_PYTHON": str(programs / "python")}
    return {**kept, **python, "SPARK_HOME": str(spark_home(programs)), **more}


def spark_home(programs: Path) -> Path:
    """Where pyspark brought Spark to."""
    (found,) = programs.parent.glob("lib/python3*/site-packages/pyspark")
    return found


def free_port(host: str) -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Cluster:
    """A master and its workers."""

    address: str
    page: str
    workers: Mapping[str, "subprocess.Popen[bytes]"]

    def state(self) -> dict[str, str]:
        """The state of each worker by its host, as the master tells."""
        with urlopen(f"{self.page}/json/", timeout=10) as answer:  # noqa: S310 - our own address
            return {worker["host"]: worker["state"] for worker in json.load(answer)["workers"]}

    def kill(self, host: str) -> None:
        """End a worker and its executors as a machine that dies does."""
        end(self.workers[host])


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process that leads its group, and the whole group; whether it still goes on or not."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def cluster(programs: Path, place: Path) -> Iterator[Cluster]:
    """Start it, wait until both workers are known, and end every process of it, whatever happens."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, host: str, *arguments: str) -> "subprocess.Popen[bytes]":
        more = {"SPARK_LOCAL_IP": host, "SPARK_WORKER_DIR": str(place / "work")}
        more |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM}
        with (place / f"{name}-{host}.log").open("wb") as log:
            command = [str(spark_home(programs) / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
            env = environment(programs, **more)
            process = subprocess.Popen(
                [*command, "--host", host, *arguments],
                env=env,
                cwd=place,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        started.append(process)
        return process

    try:
        port, page = free_port(MASTER), free_port(MASTER)
        address = f"spark://{MASTER}:{port}"
        start("master.Master", MASTER, "--port", str(port), "--webui-port", str(page))
        size = ("--cores", "1", "--memory", "1g", "--webui-port", "0")
        workers = {host: start("worker.Worker", host, *size, address) for host in WORKERS}
        found = Cluster(address, f"http://{MASTER}:{page}", workers)
        _await_workers(found, started)
        yield found
    finally:
        for process in started:
            end(process)


def _await_workers(found: Cluster, started: list["subprocess.Popen[bytes]"]) -> None:
    last: object = None
    until = time.monotonic() + UP_SECONDS
    while time.monotonic() < until:
        assert all(process.poll() is None for process in started), [process.args for process in started]
        try:
            last = found.state()
        except (OSError, ValueError) as error:
            last = error  # Its page is not up yet, or has nothing to say yet.
        if last == dict.fromkeys(WORKERS, "ALIVE"):
            return
        time.sleep(0.5)
    raise AssertionError(f"not up within {UP_SECONDS} s: {last}")


def tasks_by_host(events: Path) -> dict[str, int]:
    """Finished tasks by the host that did them, from Spark's own event logs."""
    done: dict[str, int] = {}
    for log in (path for path in events.rglob("*") if path.is_file()):
        for line in log.read_text().splitlines():
            if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                event = json.loads(line)
                if event["Task End Reason"]["Reason"] == "Success":
                    host = event["Task Info"]["Host"]
                    done[host] = done.get(host, 0) + 1
    return done
