"""The program of the init container: its own tests, and that it understands what the operator tells it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab.build.cache import Cache
from lab.build.toolchains import find_or_fetch_go
from lab.settings import REPOSITORY, Settings, Versions
from streamapp.api.objects import manifests
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.seeding import seeded_process_id
from tests.streamapps import UID, a_streamapp

pytestmark = [pytest.mark.registries, pytest.mark.timeout(600)]

SOURCES = REPOSITORY / "operator" / "images" / "seed"
ENVIRONMENT = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}


@pytest.fixture(scope="module")
def go() -> Path:
    settings = Settings.from_environment()
    return find_or_fetch_go(settings.versions, Cache(settings.cache))


@pytest.fixture(scope="module")
def program(go: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("seed") / "seed"
    subprocess.run([go, "build", "-trimpath", "-o", made, "."], cwd=SOURCES, env=ENVIRONMENT, check=True)
    return made


def told_by_the_operator(folder: Path, ordinal: int, changes: dict[str, Any] | None = None) -> list[str]:
    """The arguments of the init container as its pod would give them, but for the places."""
    whole = manifests.statefulset(a_streamapp(changes), manifests.Installation(name="here", seed_image="seed"))
    container = whole["spec"]["template"]["spec"]["initContainers"][0]
    places = {
        "--state-dir=/var/lib/streams": f"--state-dir={folder / 'state'}",
        "--report=/dev/termination-log": f"--report={folder / 'report'}",
        "--ordinal=$(ORDINAL)": f"--ordinal={ordinal}",
    }
    arguments = [places.pop(one, one) for one in container["args"]]
    assert places == {}
    return arguments


@pytest.mark.guarantee(4)
@pytest.mark.guarantee(5)
def test_the_programs_own_tests_pass(go: Path) -> None:
    for command in (["vet", "./..."], ["test", "./..."]):
        ran = subprocess.run([go, *command], cwd=SOURCES, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("ordinal", [0, 1, 15, 300, 999])
@pytest.mark.guarantee(5)
def test_a_volume_gets_the_process_id_that_the_core_expects(program: Path, tmp_path: Path, ordinal: int) -> None:
    expected = str(seeded_process_id(UID, Ordinal(ordinal)))
    told = subprocess.check_output([program, *told_by_the_operator(tmp_path, ordinal)], text=True)
    assert told == f"wrote process ID {expected}\n"
    written = (tmp_path / "state" / "wordcount" / "kafka-streams-process-metadata").read_text()
    assert json.loads(written) == {"processId": expected}
    assert json.loads((tmp_path / "report").read_text()) == {"processId": expected, "seeded": True, "idleSeconds": None}


@pytest.mark.parametrize("age", ["1m", "20h", "1h30m", "36h15m5s", "8760h", "90s500ms"])
def test_the_program_reads_ages_as_the_resource_writes_them(program: Path, tmp_path: Path, age: str) -> None:
    arguments = told_by_the_operator(tmp_path, 0, {"spec.state.maxIdleTime": age})
    assert subprocess.run([program, *arguments], check=False, stdout=subprocess.DEVNULL).returncode == 0


def test_the_program_asks_for_the_pinned_go() -> None:
    assert f"\ngo {Versions.read().go}\n" in (SOURCES / "go.mod").read_text()
