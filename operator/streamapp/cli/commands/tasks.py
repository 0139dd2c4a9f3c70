"""`tasks`: the task table of one StreamApp, from its operator."""

from collections.abc import Iterable

from streamapp.api.http.messages import Task, Tasks, tasks_path
from streamapp.api.names import PLURAL
from streamapp.cli.cluster import operator_pods, streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.run import run
from streamapp.cli.errors import Exit
from streamapp.cli.screens.tasks import tasks_screen
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.kube.client.kinds import Key


def tasks(
    target: Target, operator_namespace: str, name: str, output: Output, *, ordinal: int | None, behind: bool
) -> int:
    """Show the tasks of a StreamApp; give the exit code."""
    table = run(_read_tasks(target, operator_namespace, name))
    chosen = tuple(select(table.tasks, ordinal=ordinal, behind=behind))
    if output in {Output.TABLE, Output.WIDE}:
        console.show_paged(tasks_screen(table, chosen, wide=output is Output.WIDE))
    else:
        document = table.model_copy(update={"tasks": chosen}).model_dump(mode="json", by_alias=True, exclude_none=True)
        console.write({"kind": "Tasks", "resource": PLURAL, **document}, output)
    return Exit.FINE


async def _read_tasks(target: Target, operator_namespace: str, name: str) -> Tasks:
    """Ask the operator; CliError if there is no such StreamApp, or the operator does not answer."""
    connection = await streamapps.resolve(target)
    namespace = streamapps.namespace_of(target, connection)
    async with streamapps.open_client(connection, streamapps.title_of(namespace, name)) as client:
        # For a mistyped name this error proposes similar names; the operator's answer does not.
        await streamapps.read(client, connection, Key(namespace, name))
        leader = await operator_pods.find_leader(client, operator_namespace)
        return await operator_pods.ask(client, leader, tasks_path(namespace, name), Tasks)


def select(tasks: Iterable[Task], *, ordinal: int | None, behind: bool) -> Iterable[Task]:
    """The tasks with an owner or a copy on one pod, and only those that are behind if `behind` is set."""
    for task in tasks:
        if ordinal is not None and ordinal not in ordinals_of(task):
            continue
        if not behind or is_behind(task):
            yield task


def ordinals_of(task: Task) -> set[int]:
    """The pods with the task or a copy of it."""
    owner = None if task.owner is None else task.owner.ordinal
    return {copy.ordinal for copy in task.copies} | (set() if owner is None else {owner})


def is_behind(task: Task) -> bool:
    """Whether a task does not run, has a copy that lags, or is not covered without the highest pod."""
    if task.state != "running":
        return True
    return task.stateful and (not task.covered_on or not all(copy.caught_up for copy in task.copies))
