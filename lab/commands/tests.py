"""The command that runs the lab tests: one cluster for all of them, in file order, taken down afterwards."""

import subprocess
import sys

import click

from lab.clusters.choice import chosen
from lab.clusters.cluster import UP_ALREADY, Cluster
from lab.errors import LabError
from lab.settings import REPOSITORY, Settings
from lab.terminal import progress, show_error


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
        _bring_up(cluster)
    try:
        with cluster.session() as session:
            options = ("-p", "no:randomly", "-m", "lab", "--override-ini=timeout=600", "--durations=20")
            ran = subprocess.run(
                (*session.prefix, sys.executable, "-m", "pytest", *options, *(pytest_arguments or ("tests/lab",))),
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


def _bring_up(cluster: Cluster) -> None:
    """Bring it up; a failed attempt is taken down again, so that no machine of a CI is left with half a lab.

    A lab that was there before is somebody's, and stays whatever the failure was.
    """
    there_before = _is_up(cluster)
    try:
        cluster.up()
    except BaseException as error:
        if not there_before and not (isinstance(error, LabError) and error.what.endswith(UP_ALREADY)):
            try:
                cluster.down()
            except LabError as second:
                show_error(second)
        raise


def _is_up(cluster: Cluster) -> bool:
    try:
        with cluster.session():
            return True
    except LabError:
        return False
