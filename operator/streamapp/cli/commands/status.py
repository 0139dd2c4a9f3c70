"""`status` and `explain`: one StreamApp or several, once or as a watch."""

from contextlib import suppress

from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.app_view import AppState, AppView, view_of
from streamapp.cli.model.explain import explain
from streamapp.cli.screens import documents
from streamapp.cli.screens import watch as watching
from streamapp.cli.screens.explain import explain_screen
from streamapp.cli.screens.live import WatchState
from streamapp.cli.screens.overview import overview_screen
from streamapp.cli.screens.status import status_screen
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.kube.client.kinds import Key

_NEEDS_ACTION = frozenset({AppState.STALLED, AppState.NOT_READY, AppState.UNKNOWN})


def status(target: Target, name: str | None, output: Output, *, everywhere: bool, with_code: bool) -> int:
    """Show one StreamApp, or several; give the exit code."""
    shown = _show_all(target, output, everywhere=everywhere) if name is None else _show_one(target, name, output)
    views = run(shown)
    return code_of(views) if with_code else Exit.FINE


def watch(target: Target, name: str | None, output: Output, *, everywhere: bool, with_code: bool) -> int:
    """Show one StreamApp, or several, until Ctrl-C or until the one is deleted; give the exit code."""
    state = WatchState(key=None, with_namespace=everywhere)
    # Ctrl-C is the ordinary end of a watch.
    with suppress(KeyboardInterrupt):
        run(_watch(target, name, output, state))
    views = [view_of(resource, watching.now()) for resource in state.objects.values()]
    return code_of(views) if with_code else Exit.FINE


def explanation(target: Target, name: str, output: Output) -> int:
    """Explain the state of a StreamApp; give the exit code."""
    resource = run(streamapps.read_one(target, name))
    answers = explain(resource, watching.now())
    if output is Output.TABLE:
        console.show(explain_screen(answers))
    else:
        console.write(documents.of_explanation(answers), output)
    return Exit.FINE


def code_of(views: list[AppView]) -> int:
    """The exit code for these StreamApps: the worst of them."""
    states = {view.state for view in views}
    if states & _NEEDS_ACTION or any(view.is_overdue for view in views):
        return Exit.NEEDS_ACTION
    return Exit.FINE if states <= {AppState.SETTLED} else Exit.IN_PROGRESS


async def _show_one(target: Target, name: str, output: Output) -> list[AppView]:
    resource = await streamapps.read_one(target, name)
    view = view_of(resource, watching.now())
    if output is Output.TABLE:
        console.show(status_screen(resource, view.now))
    else:
        console.write(documents.of_status(view), output)
    return [view]


async def _show_all(target: Target, output: Output, *, everywhere: bool) -> list[AppView]:
    resources = await streamapps.list_all(target, everywhere=everywhere)
    views = [view_of(resource, watching.now()) for resource in resources]
    if output is not Output.TABLE:
        console.write({"items": [documents.of_status(view) for view in views]}, output)
    elif views:
        console.show(overview_screen(views, with_namespace=everywhere))
    else:
        place = "any namespace"
        if not everywhere:
            place = f"namespace {streamapps.namespace_of(target, await streamapps.resolve(target))}"
        raise CliError("StreamApps", f"there are none in {place}", "apply one, or list with --all-namespaces")
    return views


async def _watch(target: Target, name: str | None, output: Output, state: WatchState) -> None:
    connection = await streamapps.resolve(target)
    namespace = None if state.with_namespace else streamapps.namespace_of(target, connection)
    if name is not None:
        # A watch of a missing name is only empty; this read gives an error with the next step.
        await streamapps.read_one(target, name)
        state.key = Key(namespace or "", name)
    source = streamapps.watch_source(target, namespace, name)
    with (
        streamapps.translate_errors(connection, streamapps.title_of(namespace, name)),
        watching.display(console.console(), output, state) as show,
    ):
        await watching.watch(source.events(), state, show)
