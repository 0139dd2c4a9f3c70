"""The program of the init container that brings the agent: its own tests, and that it understands the operator."""

import os
import subprocess
from pathlib import Path

import pytest

from lab.build.cache import Cache
from lab.build.init_programs import AGENT
from lab.build.maven import AGENT_JAR
from lab.build.toolchains import find_or_fetch_go
from lab.settings import Settings, Versions
from streamapp.api.objects import manifests
from tests.streamapps import a_streamapp

pytestmark = [pytest.mark.registries, pytest.mark.timeout(600)]

ENVIRONMENT = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}


@pytest.fixture(scope="module")
def go() -> Path:
    settings = Settings.from_environment()
    return find_or_fetch_go(settings.versions, Cache(settings.cache))


def test_the_programs_own_tests_pass(go: Path) -> None:
    for command in (["vet", "./..."], ["test", "./..."]):
        ran = subprocess.run([go, *command], cwd=AGENT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_program_does_what_the_operator_tells_it(go: Path, tmp_path: Path) -> None:
    program, jar, to, report = (tmp_path / name for name in ("bring", AGENT_JAR, "to.jar", "report"))
    subprocess.run([go, "build", "-trimpath", "-o", program, "."], cwd=AGENT, env=ENVIRONMENT, check=True)
    jar.write_bytes(b"jar")
    here = manifests.Installation(name="here", seed_image="seed", agent_image="agent", accepted=lambda _: "hashes")
    app = a_streamapp({"spec.agent.enabled": True})
    bringer = manifests.statefulset(app, here)["spec"]["template"]["spec"]["initContainers"][0]
    places = {
        "--to=/streamapp/agent/streamapp-agent.jar": f"--to={to}",
        "--report=/dev/termination-log": f"--report={report}",
    }
    arguments = [places.pop(one, one) for one in bringer["args"]]
    assert places == {}
    told = subprocess.check_output([program, f"--from={jar}", *arguments], text=True)
    assert (to.read_bytes(), report.read_text()) == (b"jar", told.strip())
    assert told.startswith(f"brought {to}, 3 bytes, SHA-256 ")


def test_the_dockerfile_has_the_jar_where_the_program_looks_for_it() -> None:
    assert f'"from", "/{AGENT_JAR}"' in (AGENT / "main.go").read_text()
    assert f"COPY {AGENT_JAR} /{AGENT_JAR}\n" in (AGENT / "Dockerfile").read_text()


def test_the_program_asks_for_the_pinned_go() -> None:
    assert f"\ngo {Versions.read().go}\n" in (AGENT / "go.mod").read_text()
