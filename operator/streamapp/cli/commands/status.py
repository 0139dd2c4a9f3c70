"""What the commands do, once `root` has read the command line. Everything heavy is imported here and not there."""

from contextlib import suppress

from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.target import Where
from streamapp.cli.commands.doctor import diagnose
from streamapp.cli.commands.run import run
from streamapp.cli.commands.tasks import read_tasks, show_tasks
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.app_view import State, View, view_of
from streamapp.cli.model.explain import explain
from streamapp.cli.screens import documents
from streamapp.cli.screens import watch as watching
from streamapp.cli.screens.doctor import doctor_screen
from streamapp.cli.screens.explain import in_words
from streamapp.cli.screens.live import Picture
from streamapp.cli.screens.overview import overview_screen
from streamapp.cli.screens.status import status_screen
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.kube.client.kinds import Key

_NEEDS_SOMEBODY = frozenset({State.STALLED, State.NOT_READY, State.UNKNOWN})


def status(where: Where, name: str | None, output: Output, *, everywhere: bool, with_code: bool) -> int:
    """Show one StreamApp, or several; give the exit code."""
    asked = _several(where, output, everywhere=everywhere) if name is None else _one(where, name, output)
    views = run(asked)
    return code_of(views) if with_code else Exit.FINE


def watch(where: Where, name: str | None, output: Output, *, everywhere: bool, with_code: bool) -> int:
    """Show the same and go on showing it; give the exit code."""
    picture = Picture(key=None, with_namespace=everywhere)
    # The ordinary way to end a watch.
    with suppress(KeyboardInterrupt):
        run(_watch(where, name, output, picture))
    views = [view_of(one, watching.now()) for one in picture.objects.values()]
    return code_of(views) if with_code else Exit.FINE


def explanation(where: Where, name: str, output: Output) -> int:
    """Say in sentences why a StreamApp is as it is; give the exit code."""
    resource = run(streamapps.one(where, name))
    found = explain(resource, watching.now())
    if output is Output.TABLE:
        console.show(in_words(found))
    else:
        console.write(documents.of_explanation(found), output)
    return Exit.FINE


def tasks(
    where: Where, operator_namespace: str, name: str, output: Output, *, ordinal: int | None, behind: bool
) -> int:
    """Show the tasks of a StreamApp; give the exit code."""
    told = run(read_tasks(where, operator_namespace, name))
    show_tasks(told, output, ordinal=ordinal, behind=behind)
    return Exit.FINE


def doctor(
    where: Where, operator_namespace: str, name: str | None, output: Output, *, everywhere: bool, with_code: bool
) -> int:
    """Say what is wrong; give the exit code."""
    report = run(diagnose(where, operator_namespace, name, everywhere=everywhere))
    if output is Output.TABLE:
        console.show(doctor_screen(report))
    else:
        console.write(documents.of_report(report), output)
    return report.code if with_code else Exit.FINE


def code_of(views: list[View]) -> int:
    """The exit code that says how they are: the worst of them."""
    states = {view.state for view in views}
    if states & _NEEDS_SOMEBODY or any(view.is_forgotten for view in views):
        return Exit.NEEDS_SOMEBODY
    return Exit.FINE if states <= {State.SETTLED} else Exit.GOES_ON


async def _one(where: Where, name: str, output: Output) -> list[View]:
    resource = await streamapps.one(where, name)
    view = view_of(resource, watching.now())
    if output is Output.TABLE:
        console.show(status_screen(resource, view.now))
    else:
        console.write(documents.of_status(view), output)
    return [view]


async def _several(where: Where, output: Output, *, everywhere: bool) -> list[View]:
    resources = await streamapps.several(where, everywhere=everywhere)
    views = [view_of(one, watching.now()) for one in resources]
    if output is not Output.TABLE:
        console.write({"items": [documents.of_status(view) for view in views]}, output)
    elif views:
        console.show(overview_screen(views, with_namespace=everywhere))
    else:
        place = (
            "any namespace"
            if everywhere
            else f"namespace {streamapps.namespace_of(where, await streamapps.find(where))}"
        )
        raise CliError("StreamApps", f"there is none in {place}", "apply one, or look with --all-namespaces")
    return views


async def _watch(where: Where, name: str | None, output: Output, picture: Picture) -> None:
    found = await streamapps.find(where)
    namespace = None if picture.with_namespace else streamapps.namespace_of(where, found)
    if name is not None:
        # Says what is wrong in more words than an empty list does.
        await streamapps.one(where, name)
        picture.key = Key(namespace or "", name)
    following = streamapps.following(where, namespace, name)
    with (
        streamapps.told(found, streamapps.title_of(namespace, name)),
        watching.display(console.console(), output, picture) as tell,
    ):
        await watching.watch(following.events(), picture, tell)
