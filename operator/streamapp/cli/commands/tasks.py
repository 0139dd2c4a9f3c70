"""`kubectl streamapp tasks`: the full task table of one StreamApp, from its operator."""

from collections.abc import Iterable

from streamapp.api.http.messages import Task, Tasks, tasks_path
from streamapp.api.names import PLURAL
from streamapp.cli.cluster import operator_pods, streamapps
from streamapp.cli.cluster.target import Where
from streamapp.cli.screens.tasks import tasks_screen
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.kube.client.kinds import Key


async def read_tasks(where: Where, operator_namespace: str, name: str) -> Tasks:
    """Ask the operator; CliError if there is no such StreamApp, or nobody answers."""
    found = await streamapps.find(where)
    namespace = streamapps.namespace_of(where, found)
    async with streamapps.opened(found, streamapps.title_of(namespace, name)) as client:
        # Says of a name that is mistyped what else there is, which the operator does not know.
        await streamapps.read(client, found, Key(namespace, name))
        leader = await operator_pods.leader(client, operator_namespace)
        return await operator_pods.ask(client, leader, tasks_path(namespace, name), Tasks)


def show_tasks(told: Tasks, output: Output, *, ordinal: int | None, behind: bool) -> None:
    """Write those that were asked for."""
    chosen = tuple(select(told.tasks, ordinal=ordinal, behind=behind))
    if output in {Output.TABLE, Output.WIDE}:
        screen = tasks_screen(told, chosen, wide=output is Output.WIDE)
        console.show_paged(screen)
        return
    document = told.model_copy(update={"tasks": chosen}).model_dump(mode="json", by_alias=True, exclude_none=True)
    console.write({"kind": "Tasks", "resource": PLURAL, **document}, output)


def select(tasks: Iterable[Task], *, ordinal: int | None, behind: bool) -> Iterable[Task]:
    """Those with their owner or a copy on one pod, those that are not all well, or all."""
    for task in tasks:
        if ordinal is not None and ordinal not in places(task):
            continue
        if not behind or is_behind(task):
            yield task


def places(task: Task) -> set[int]:
    """The pods that have to do with a task."""
    owner = None if task.owner is None else task.owner.ordinal
    return {copy.ordinal for copy in task.copies} | (set() if owner is None else {owner})


def is_behind(task: Task) -> bool:
    """Tell whether a task does not run, has a copy that is behind, or would not be covered without the highest pod."""
    if task.state != "running":
        return True
    return task.stateful and (not task.covered_on or not all(copy.caught_up for copy in task.copies))
