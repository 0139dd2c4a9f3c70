"""The command `migrate` and the small world that it runs in."""

from collections.abc import Callable

import pytest

from streamapp.cli.commands import migrate as command
from streamapp.cli.screens import watch
from tests.cli.cluster import Cluster
from tests.cli.conftest import Ran, Run
from tests.cli.migrating import NAME, World
from tests.cli.operator_there import OperatorThere


@pytest.fixture
def world(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> World:
    there = OperatorThere(cluster)
    there.install("operator-a", lease="operator-a_1")
    there.serve()
    made = World(cluster, there)
    monkeypatch.setattr(command, "pause", made.tick)
    monkeypatch.setattr(watch, "now", lambda: made.now)
    return made


@pytest.fixture
def running(world: World) -> World:
    world.begin()
    return world


@pytest.fixture
def migrate(run: Run) -> Callable[..., Ran]:
    return lambda *arguments: run("migrate", NAME, "--yes", *arguments)
