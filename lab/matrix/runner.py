"""Tries one cell after the other on one broker; a cell that fails says why and the next one is tried."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.build import bases, maven
from lab.build.cache import Cache
from lab.errors import LabError
from lab.matrix import applications, broker
from lab.matrix.cells import Cell
from lab.matrix.trial import Size, Trial
from lab.matrix.trial_result import TrialResult, Verdict
from lab.settings import Settings
from lab.terminal import progress, step

Take = Callable[[TrialResult], None]


@dataclass(frozen=True)
class Runner:
    """What all cells have in common."""

    settings: Settings
    size: Size
    agent: Path | None = None
    """A jar of the agent; None: it is built from this repository."""
    logs: Path | None = None
    """Where logs and state stay; None: nowhere."""

    def run(self, cells: Sequence[Cell], take: Take) -> None:
        """Try these; `take` gets each outcome as soon as it is there. LabError if there is no broker or no agent."""
        versions, cache = self.settings.versions, Cache(self.settings.cache)
        agent = (self.agent or maven.agent_jar(versions, cache) / maven.AGENT_JAR).absolute()
        jars, java = maven.broker_jars(versions, cache), bases.java_runtime(versions, cache)
        with tempfile.TemporaryDirectory(prefix="streamapp-matrix-") as temporary:
            folder = (self.logs or Path(temporary)).absolute()
            folder.mkdir(parents=True, exist_ok=True)
            with broker.running(jars, java, _new(folder / "broker")) as one:
                for number, cell in enumerate(cells, start=1):
                    take(self._try(cell, one, agent, _new(folder / f"cell-{number}"), number))

    def _try(self, cell: Cell, one: broker.Broker, agent: Path, folder: Path, number: int) -> TrialResult:
        versions, cache = self.settings.versions, Cache(self.settings.cache)
        try:
            application = applications.build(cell, f"matrix-{number}", versions, cache)
            with step(cell.name):
                return Trial(application, one, agent, folder, self.size).run()
        except LabError as error:
            progress.print(f"  {error}", style="red", markup=False)
            return TrialResult(cell, Verdict.FAILED, note=f"{error.what}: {error.why}")
        finally:
            one.delete_all()


def _new(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
