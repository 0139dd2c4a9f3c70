"""The command that runs the lab tests: one cluster for all of them, in file order, taken down afterwards."""

import subprocess
import sys

import click

from lab.clusters.choice import chosen
from lab.settings import REPOSITORY, Settings
from lab.terminal import progress


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--keep", is_flag=True, help="Leave the cluster up afterwards, and use one that is up.")
@click.argument("pytest_arguments", nargs=-1, type=click.UNPROCESSED)
def test(*, keep: bool, pytest_arguments: tuple[str, ...]) -> None:
    """Bring the cluster up, run the tests marked `lab` where they reach it, take it down.

    PYTEST_ARGUMENTS are given to pytest, for example a file or `-k words`.
    """
    cluster = chosen(Settings.from_environment())
    if keep:
        cluster.ensure_up()
    else:
        cluster.up()
    try:
        with cluster.session() as session:
            command = (sys.executable, "-m", "pytest", "-p", "no:randomly", "-m", "lab", "--override-ini=timeout=600")
            ran = subprocess.run(
                (*session.prefix, *command, *(pytest_arguments or ("tests/lab",))),
                cwd=REPOSITORY,
                env=session.environment,
                check=False,
            )
        for sentence in cluster.skipped():
            progress.print(f"[dim]not exercised here: {sentence}[/]")
    finally:
        if not keep:
            cluster.down()
    sys.exit(ran.returncode)
