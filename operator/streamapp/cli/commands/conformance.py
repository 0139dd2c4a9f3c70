"""`conformance`: runs the counter on the cluster and the Kafka of a user, and says what holds there.

Everything that it makes has the random name of the run. It cleans up at the end, after an error and after Ctrl-C.
"""

import asyncio
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import click

from streamapp.api.names import selector_of
from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.adoption import give_back
from streamapp.cli.commands.confirm import require_yes
from streamapp.cli.commands.run import run
from streamapp.cli.conformance.cleanup import Cleanup
from streamapp.cli.conformance.manifests import RUN_LABEL, Setup
from streamapp.cli.conformance.procedure import Procedure
from streamapp.cli.conformance.rows import Result, Row
from streamapp.cli.conformance.screen import report_screen
from streamapp.cli.conformance.trial import Trial
from streamapp.cli.errors import Exit
from streamapp.cli.text import console
from streamapp.cli.text.console import Output

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of the command line."""

    image: str
    bootstrap_servers: str
    client_properties_secret: str
    storage_class: str
    replication_factor: int
    operator_namespace: str
    most_gap: timedelta
    timeout: timedelta
    keep: bool
    yes: bool


def conformance(target: Target, request: Request, output: Output) -> int:
    """Run everything; success only if every row passes and nothing is left."""
    connection = run(streamapps.resolve(target))
    setup = Setup(
        name=f"conformance-{secrets.token_hex(3)}",
        namespace=streamapps.namespace_of(target, connection),
        image=request.image,
        bootstrap_servers=request.bootstrap_servers,
        secret=request.client_properties_secret,
        storage_class=request.storage_class,
        replication_factor=request.replication_factor,
    )
    where = f"namespace {setup.namespace} of {connection.server}, and topics at {setup.bootstrap_servers}"
    question = f"Make the StreamApp {setup.name} with pods and volumes in {where}"
    require_yes(f"conformance in {setup.namespace}", question, yes=request.yes)
    rows, left = run(_examine(target, setup, request))
    _show(setup, rows, left, output)
    return Exit.FINE if all(row.result is Result.PASS for row in rows) and (request.keep or not left) else Exit.FAILED


async def _examine(target: Target, setup: Setup, request: Request) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Run, and clean up whatever becomes of the run; give the rows, and what is left."""
    connection = await streamapps.resolve(target)
    app_target = replace(target, namespace=setup.namespace)
    async with streamapps.open_client(connection, f"StreamApp {setup.namespace}/{setup.name}") as client:
        trial = Trial(client, setup, request.timeout)
        procedure = Procedure(
            trial, request.operator_namespace, request.most_gap, lambda: give_back(app_target, setup.name)
        )
        try:
            rows = await procedure.run()
        except BaseException:
            for one in await _ended(trial, keep=request.keep):
                click.echo(f"left: {one}", err=True)
            raise
        return rows, await _ended(trial, keep=request.keep)


async def _ended(trial: Trial, *, keep: bool) -> tuple[str, ...]:
    """Clean up; give what is left. A second Ctrl-C breaks it off, and says how to go on by hand."""
    if not trial.has_made:
        return ()
    setup = trial.setup
    by_hand = (
        f"kubectl delete -n {setup.namespace} streamapp/{setup.name}; "
        f"kubectl delete -n {setup.namespace} pods,statefulsets,pvc -l {selector_of(setup.name)}; "
        f"kubectl delete -n {setup.namespace} pods -l {RUN_LABEL}={setup.name}; topics {setup.topics}"
    )
    if keep:
        return (f"kept, to delete by hand: {by_hand}",)
    try:
        return await Cleanup(trial).run()
    except asyncio.CancelledError:
        click.echo(f"the clean-up was broken off; by hand: {by_hand}", err=True)
        raise


def _show(setup: Setup, rows: tuple[Row, ...], left: tuple[str, ...], output: Output) -> None:
    if output is Output.TABLE:
        console.show(report_screen(rows, left))
        return
    document: Json = {"namespace": setup.namespace, "name": setup.name, "image": setup.image}
    console.write({**document, "checks": [row.document for row in rows], "left": list(left)}, output)
