"""`adopt` and `disown`: look, decide, write one thing, and look again, until nothing is left to do."""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from streamapp.cli.adoption import checks, disowning, manifest, steps
from streamapp.cli.adoption.facts import Facts, is_going, uid_of
from streamapp.cli.adoption.findings import Check, Finding, obstacles
from streamapp.cli.adoption.manifest import Choices
from streamapp.cli.adoption.steps import Done, Patch, Progress, Step, Stop, Wait
from streamapp.cli.cluster import streamapps, workloads
from streamapp.cli.cluster.api_errors import no_definition
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.confirm import require_yes
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.phrases import counted
from streamapp.cli.screens.adoption import findings_screen, manifest_text
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.cli.text.sanitize import plain
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.client.kinds import STREAM_APPS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection

LOOK_AGAIN_SECONDS = 0.5
MOST_CONFLICTS = 20
"""In a row: another writer changes the object all the time."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of the command line."""

    name: str
    dry_run: bool
    yes: bool
    despite: frozenset[Check]
    """Errors that do not stop this run."""
    despite_operator: bool = False
    choices: Choices = field(default_factory=Choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Procedure:
    """Where `adopt` and `disown` differ."""

    verb: str
    rights: workloads.Rights
    findings: Callable[[Facts], tuple[Finding, ...]]
    next_step: Callable[[Facts, Progress], Step]
    manifest: Callable[[Facts], Json | None]
    """What it will create; None: nothing, or it is there already."""
    is_checked: Callable[[Facts], bool]
    """Whether the findings count before the next write."""


def adopt(target: Target, request: Request, output: Output) -> int:
    """Give a StatefulSet to the operator; give the exit code."""
    choices = request.choices
    procedure = _Procedure(
        verb="adopt",
        rights=workloads.TO_ADOPT,
        findings=lambda facts: checks.findings(facts, choices) if steps.is_checked(facts) else (),
        next_step=lambda facts, progress: steps.next_step(facts, progress, choices),
        manifest=lambda facts: manifest.draft_of(facts, choices) if facts.streamapp is None else None,
        is_checked=steps.is_checked,
    )
    return _run(target, request, output, procedure)


def disown(target: Target, request: Request, output: Output) -> int:
    """Take a StatefulSet from the operator; give the exit code."""
    return _run(target, request, output, _disowning(request))


async def give_back(target: Target, name: str) -> tuple[int, tuple[str, ...]]:
    """Disown without questions; give how many pods run on, and the names of those that restarted meanwhile.

    Raises:
        CliError: Something stands in the way, a write failed, or time has run out.
    """
    request = Request(name=name, dry_run=False, yes=True, despite=frozenset())
    procedure = _disowning(request)
    before = await _look(target, request, procedure)
    refused = obstacles(procedure.findings(before), request.despite)
    if refused:
        raise _refusal(before, procedure, refused)
    after, _ = await _proceed(target, request, procedure)
    return len(after.pods), _restarted(before, after)


def _disowning(request: Request) -> _Procedure:
    return _Procedure(
        verb="disown",
        rights=workloads.TO_DISOWN,
        findings=disowning.findings,
        next_step=lambda facts, _: disowning.next_step(facts, despite_operator=request.despite_operator),
        manifest=lambda facts: (
            disowning.plain_statefulset(facts) if facts.is_adopted or facts.statefulset is None else None
        ),
        is_checked=lambda facts: facts.is_adopted and not is_going(facts.statefulset),
    )


def _run(target: Target, request: Request, output: Output, procedure: _Procedure) -> int:
    before = run(_look(target, request, procedure))
    found = procedure.findings(before)
    refused = obstacles(found, request.despite)
    made = procedure.manifest(before)
    if request.dry_run:
        _show_dry_run(before, found, made, output)
        return Exit.FAILED if refused else Exit.FINE
    if found:
        console.show(findings_screen(f"{procedure.verb} {before.title}", found), Console(stderr=True, highlight=False))
    if refused:
        raise _refusal(before, procedure, refused)
    # Outside the event loop, which would swallow Ctrl-C at the prompt.
    question = f"{procedure.verb.capitalize()} {before.title} with {counted(len(before.pods), 'pod')}"
    require_yes(f"StatefulSet {before.title}", question, yes=request.yes)
    after, count = run(_proceed(target, request, procedure))
    _show_result(before, after, found, count, procedure, output)
    return Exit.FINE


async def _look(target: Target, request: Request, procedure: _Procedure) -> Facts:
    connection = await streamapps.resolve(target)
    key = Key(streamapps.namespace_of(target, connection), request.name)
    async with streamapps.open_client(connection, f"StatefulSet {key}") as client:
        facts = await workloads.read_facts(client, key, procedure.rights)
        if facts.streamapp is None and not await client.serves(STREAM_APPS):
            raise no_definition(connection)
    if procedure.verb == "adopt" and facts.statefulset is None and facts.origin is None:
        step = f"list them with `kubectl get statefulsets -n {key.namespace}`"
        raise CliError(f"StatefulSet {key}", "it does not exist", step)
    if procedure.verb == "disown" and facts.streamapp is None:
        step = "list them with `kubectl streamapp status --all-namespaces`"
        raise CliError(f"StreamApp {key}", "it does not exist", step)
    return facts


async def _proceed(target: Target, request: Request, procedure: _Procedure) -> tuple[Facts, int]:
    """Go on until it is done; give the last look, and how many writes were made."""
    connection = await streamapps.resolve(target)
    key = Key(streamapps.namespace_of(target, connection), request.name)
    async with streamapps.open_client(connection, f"StatefulSet {key}") as client:
        return await _Loop(client, connection, key, request, procedure).until_done()


@dataclass(slots=True)
class _Loop:
    """The looks and writes of one run."""

    client: KubeClient
    connection: ClusterConnection
    key: Key
    request: Request
    procedure: _Procedure
    progress: Progress = field(default_factory=Progress)
    count: int = 0
    conflicts: int = 0
    waits_since: tuple[str, float] = ("", 0.0)

    async def until_done(self) -> tuple[Facts, int]:
        """Look and write in turn. CliError: an obstacle has come, a write failed, or time has run out."""
        # The rights were asked for before; now each write shows them.
        while True:
            facts = await workloads.read_facts(self.client, self.key, ())
            if self.procedure.is_checked(facts):
                refused = obstacles(self.procedure.findings(facts), self.request.despite)
                if refused:
                    raise _refusal(facts, self.procedure, refused)
            step = self.procedure.next_step(facts, self.progress)
            match step:
                case Done():
                    return facts, self.count
                case Stop(why, next_step):
                    raise CliError(f"StreamApp {self.key}", why, f"{next_step}, then run the command again")
                case Wait():
                    if not await self._wait(step):
                        return facts, self.count
                case _:
                    await self._write(step)

    async def _wait(self, step: Wait) -> bool:
        """Wait for the next look; False if time has run out for what is not needed."""
        what, since = self.waits_since
        now = time.monotonic()
        if what != step.what:
            self.waits_since = step.what, now
            click.echo(f"waits until {step.what}", err=True)
        elif now - since > step.seconds:
            if not step.is_needed:
                return False
            why = f"waited {step.seconds:.0f} s until {step.what}" + (f": {plain(step.why)}" if step.why else "")
            raise CliError(f"StatefulSet {self.key}", why, step.next_step)
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
        return True

    async def _write(self, step: workloads.Write) -> None:
        try:
            self.progress = await workloads.write(self.client, self.connection, self.key, step, self.progress)
        except ConflictError as error:
            self.conflicts += 1
            if self.conflicts > MOST_CONFLICTS:
                step_words = "find out who, then run the command again"
                raise CliError(error.what, "other writers changed it before each attempt", step_words) from error
            return
        self.conflicts, self.count = 0, self.count + 1
        name = f" {step.body['metadata']['name']}" if isinstance(step, Patch) and step.kind == "Pod" else ""
        click.echo(f"{step.says}{name}", err=True)


def _refusal(facts: Facts, procedure: _Procedure, refused: Sequence[Finding]) -> CliError:
    why = "; ".join(f"{one.check.name}: {one.detail}" for one in refused)
    first = refused[0]
    return CliError(f"{procedure.verb} StatefulSet {facts.title}", why, first.fix[0].lower() + first.fix[1:])


def _show_dry_run(facts: Facts, found: Sequence[Finding], made: Json | None, output: Output) -> None:
    """Findings to people, the manifest to `kubectl apply`."""
    if output is not Output.TABLE:
        document: Json = {"namespace": facts.namespace, "name": facts.name, "dryRun": True, "manifest": made}
        console.write({**document, "findings": [one.document for one in found]}, output)
        return
    errors = Console(stderr=True, highlight=False, markup=False, emoji=False)
    console.show(findings_screen(facts.title, found), errors)
    console.show(Text("\nDry run: nothing was written."), errors)
    if made is not None:
        sys.stdout.write(manifest_text(made))
        sys.stdout.flush()


def _show_result(
    before: Facts, after: Facts, found: Sequence[Finding], count: int, procedure: _Procedure, output: Output
) -> None:
    names = list(_restarted(before, after))
    unrecorded = after.unrecorded_claims if procedure.verb == "adopt" else []
    if output is not Output.TABLE:
        document = {"namespace": before.namespace, "name": before.name, "dryRun": False, "writes": count}
        document |= {"claimsWithoutProcessId": unrecorded}
        document |= {"pods": len(after.pods), "restarted": names, "findings": [one.document for one in found]}
        console.write(document, output)
        return
    belongs = "belongs to the operator" if procedure.verb == "adopt" else "belongs to no StreamApp"
    kept = f"{counted(len(after.pods), 'pod')} {'runs' if len(after.pods) == 1 else 'run'} on"
    console.show(Text(f"StatefulSet {before.title} {belongs}. {kept}, {len(names)} restarted meanwhile."))
    if names:
        console.show(Text(f"Restarted: {', '.join(names)}"))
    if unrecorded:
        console.show(
            Text(f"No process ID is on record yet for {', '.join(unrecorded)}: scale-downs are held until then.")
        )


def _restarted(before: Facts, after: Facts) -> tuple[str, ...]:
    return tuple(sorted(name for name, _ in _runs(before).items() - _runs(after).items()))


def _runs(facts: Facts) -> dict[str, tuple[str, int]]:
    """Each pod's UID and the restarts of its containers."""
    return {pod["metadata"]["name"]: (uid_of(pod), _restarts(pod)) for pod in facts.pods}


def _restarts(pod: Mapping[str, Any]) -> int:
    return sum(int(one.get("restartCount", 0)) for one in pod.get("status", {}).get("containerStatuses", ()))
