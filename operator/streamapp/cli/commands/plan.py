"""`plan`: predicts what new desired replicas would cause, from the operator's task table. It writes nothing."""

from collections.abc import Mapping
from typing import Any

from streamapp.api.http.messages import Tasks, tasks_path
from streamapp.cli.cluster import operator_pods, streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.run import run
from streamapp.cli.errors import Exit
from streamapp.cli.model.app_view import view_of
from streamapp.cli.model.predictions.documents import document_of
from streamapp.cli.model.predictions.prediction import Asked, Prediction, predict
from streamapp.cli.screens import watch
from streamapp.cli.screens.plan import plan_screen
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.kube.client.kinds import Key
from streamapp.simulator.forecast.basis import Given
from streamapp.simulator.stock import Release


def given(options: Mapping[str, Any]) -> Given:
    """Read the options; ValueError for a version of Kafka Streams that is not modelled."""
    version = options["kafka_version"]
    if version is not None:
        Release.of(version)
    return Given(
        assignor=options["assignor"],
        kafka_version=version,
        standbys=options["standbys"],
        warmups=options["warmups"],
        probing_seconds=options["probing"],
        threads=options["threads"],
        restore=options["restore_rate"],
    )


def plan(target: Target, operator_namespace: str, name: str, asked: Asked, output: Output) -> int:
    """Show the prediction; give the exit code."""
    found = run(_plan(target, operator_namespace, name, asked))
    if output is Output.TABLE:
        console.show(plan_screen(found))
    else:
        console.write(document_of(found), output)
    return Exit.FINE


async def _plan(target: Target, operator_namespace: str, name: str, asked: Asked) -> Prediction:
    """Read the resource and the task table; CliError if the layout or the assignor is not known."""
    connection = await streamapps.resolve(target)
    namespace = streamapps.namespace_of(target, connection)
    async with streamapps.open_client(connection, streamapps.title_of(namespace, name)) as client:
        resource = await streamapps.read(client, connection, Key(namespace, name))
        leader = await operator_pods.find_leader(client, operator_namespace)
        table = await operator_pods.ask(client, leader, tasks_path(namespace, name), Tasks)
    return predict(view_of(resource, watch.now()), table, asked)
