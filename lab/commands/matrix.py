"""The command that tries the agent with many launchers and versions, as a table, JSON and Markdown."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from lab.errors import LabError
from lab.matrix.cells import CELLS
from lab.matrix.results import markdown as as_markdown
from lab.matrix.results import row, table
from lab.matrix.runner import Runner
from lab.matrix.trial import Size
from lab.matrix.trial_result import TrialResult, Verdict
from lab.settings import Settings
from lab.terminal import progress, results


@click.command()
@click.option("--only", multiple=True, metavar="WORDS", help="Only cells with these words in their name; repeatable.")
@click.option("--records", default=150_000, show_default=True, help="Words to preload, for each cell.")
@click.option("--rate", default=240, show_default=True, help="Records a second of the steady load.")
@click.option("--agent", type=click.Path(exists=True, path_type=Path), help="Jar of the agent, instead of building it.")
@click.option("--logs", type=click.Path(file_okay=False, path_type=Path), help="A new folder to keep all logs in.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write the table here.")
def matrix(
    *,
    only: tuple[str, ...],
    records: int,
    rate: int,
    agent: Path | None,
    logs: Path | None,
    json_file: Path | None,
    markdown: Path | None,
) -> None:
    """Empty one of three processes by the agent, for every launcher and version; no cluster is needed."""
    cells = [cell for cell in CELLS if not only or any(words in cell.name for words in only)]
    if not cells:
        raise LabError(
            "matrix: no cell to try",
            f"no name holds {' or '.join(only)}",
            "names are: " + "; ".join(cell.name for cell in CELLS),
        )
    began_at, outcomes = datetime.now(UTC), list[TrialResult]()

    def take(outcome: TrialResult) -> None:
        """Write all there is: a run of twenty minutes may be ended before its time."""
        outcomes.append(outcome)
        progress.print(f"  {' · '.join(row(outcome))}", style="dim", markup=False, soft_wrap=True)
        if json_file:
            json_file.write_text(_figures(outcomes, began_at, records, rate))
        if markdown:
            markdown.write_text(as_markdown(outcomes, began_at, records, rate))

    try:
        Runner(Settings.from_environment(), Size(records, rate), agent, logs).run(cells, take)
    finally:
        results.print(table(outcomes))
    failed = [each.cell.name for each in outcomes if each.verdict is Verdict.FAILED]
    if failed:
        raise LabError(
            f"matrix: {len(failed)} of {len(outcomes)} cells failed", "; ".join(failed), "see the notes above"
        )


def _figures(outcomes: Sequence[TrialResult], began_at: datetime, records: int, rate: int) -> str:
    run = {"began_at": began_at.isoformat(timespec="seconds"), "records": records, "rate": rate}
    return json.dumps(run | {"cells": [each.to_json() for each in outcomes]}, indent=2) + "\n"
