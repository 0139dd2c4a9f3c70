"""`migrate`: to the streams group protocol and back. Looks, decides, writes one thing, until nothing is left to do.

Ctrl-C, a crash or a lost connection leaves a stage on record; the next run goes on from it, or takes it back.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import click
from rich.console import Console, Group
from rich.text import Text

from streamapp.api.names import MIGRATION
from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.confirm import require_yes
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.migration import checks, requests, steps, template, trial
from streamapp.cli.migration.checks import Check, Finding
from streamapp.cli.migration.facts import Facts
from streamapp.cli.migration.operator_clock import OperatorClock
from streamapp.cli.migration.plan import Plan, plan_of
from streamapp.cli.migration.steps import Change, Done, PatchAutoscaler, Progress, Stop, Wait
from streamapp.cli.model.migration_record import MOST_BYTES, Protocol, Record, UnreadableRecord
from streamapp.cli.screens import watch
from streamapp.cli.text import console, durations
from streamapp.cli.text.console import Output
from streamapp.cli.text.sanitize import plain
from streamapp.core.doctor.diagnoses import Severity
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError, UnauthenticatedError, UnavailableError
from streamapp.kube.client.kinds import Key
from streamapp.kube.client.kubeconfig import ClusterConnection

LOOK_SECONDS = 1.0
MOST_CONFLICTS = 20
"""In a row: another writer changes the object all the time."""
_MARKS = {Severity.ERROR: ("✗", "red"), Severity.WARNING: ("!", "yellow"), Severity.NOTE: ("i", "")}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of the command line."""

    name: str
    operator_namespace: str
    back: bool
    abort: bool
    patch: str
    """The text of `--patch`; empty without it."""
    env: tuple[str, ...]
    dry_run: bool
    yes: bool
    timeout: timedelta
    """Of each wait."""
    despite: frozenset[Check]

    @property
    def to(self) -> Protocol:
        """Where a new migration goes."""
        return Protocol.CLASSIC if self.back else Protocol.STREAMS


async def pause() -> None:
    """Wait for the next look."""
    await asyncio.sleep(LOOK_SECONDS)


def migrate(target: Target, request: Request, output: Output) -> int:
    """Begin a migration, continue it or take it back; give the exit code."""
    prepared = run(_prepare(target, request, output))
    if request.dry_run:
        return Exit.FINE
    facts = prepared.facts
    require_yes(f"StreamApp {facts.view.name}", prepared.question, yes=request.yes)
    loop = run(_proceed(target, request, prepared))
    _show_result(facts, loop, prepared.found, output)
    return Exit.FINE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A run before its first write."""

    facts: Facts
    """What the user was shown."""
    first: Change | None
    """The first write; None: the loop finds what is next."""
    question: str
    found: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reached:
    """An open connection, and the StreamApp that it is for."""

    client: KubeClient
    connection: ClusterConnection
    key: Key


@asynccontextmanager
async def _reach(target: Target, request: Request) -> AsyncGenerator[_Reached, None]:
    """Open a client with fresh credentials; a KubeError inside the block becomes a CliError about the StreamApp."""
    connection = await streamapps.resolve(target)
    key = Key(streamapps.namespace_of(target, connection), request.name)
    async with streamapps.open_client(connection, streamapps.title_of(key.namespace, key.name)) as client:
        yield _Reached(client, connection, key)


async def _prepare(target: Target, request: Request, output: Output) -> _Prepared:
    """Look, and show what is planned or under way. CliError: nothing can begin, or the record is of no use."""
    async with _reach(target, request) as way:
        operator, clock = request.operator_namespace, OperatorClock()
        facts = await requests.read_facts(way.client, way.connection, way.key, operator, clock, for_plan=True)
        record = facts.record
        if isinstance(record, UnreadableRecord):
            why, step = (
                f"its record cannot be read: {record.why}",
                f"look at the annotation {MIGRATION}, then remove it",
            )
            raise CliError(f"StreamApp {facts.view.name}", why, step)
        if isinstance(record, Record):
            return _prepare_to_go_on(facts, record, request, output)
        if request.abort:
            raise CliError(f"StreamApp {facts.view.name}", "no migration is under way", "no action needed")
        return await _prepare_to_begin(way.client, facts, request, output)


def _prepare_to_go_on(facts: Facts, record: Record, request: Request, output: Output) -> _Prepared:
    _require_same(facts, record, request)
    first = steps.aborted(facts, record) if request.abort else None
    if isinstance(first, Stop):
        raise CliError(f"StreamApp {facts.view.name}", plain(first.why), first.next_step)
    if request.dry_run:
        _show_under_way(facts, record, output)
    question = f"{'Abort' if request.abort else 'Continue'} the migration of {facts.view.name}"
    return _Prepared(facts=facts, first=first, question=question)


async def _prepare_to_begin(client: KubeClient, facts: Facts, request: Request, output: Output) -> _Prepared:
    after = _changed_template(facts, request)
    plan, first, found = _begin(facts, request, after)
    refused = checks.obstacles(found, request.despite)
    if request.dry_run or refused or output is Output.TABLE:
        _show_plan(plan, found, output, dry_run=request.dry_run)
    if refused:
        raise _refusal(facts, refused)
    _require_pod(facts, await trial.fault_of_pod(client, facts.resource, after))
    question = f"Stop {facts.view.name} and start it with the {request.to.value} protocol"
    return _Prepared(facts=facts, first=first, question=question, found=found)


def _require_same(facts: Facts, record: Record, request: Request) -> None:
    """A run that continues takes everything from the record: another wish must not be dropped silently."""
    what = f"StreamApp {facts.view.name}"
    again = f"`kubectl streamapp migrate {facts.name}`, or --abort"
    if request.patch or request.env:
        raise CliError(what, "a migration is under way, with the change that stands on record", f"continue it: {again}")
    if request.back and record.to is Protocol.STREAMS and not record.is_abort:
        raise CliError(what, "a migration to the streams protocol is under way", f"continue it first: {again}")


def _changed_template(facts: Facts, request: Request) -> Json:
    after = dict(facts.template)
    try:
        if request.patch:
            after = template.laid_over(after, template.read_patch(request.patch))
        if request.env:
            change = template.variables_patch(str(facts.container.get("name")), request.env)
            after = template.laid_over(after, change)
    except template.UnusablePatchError as error:
        raise CliError("the change of the template", str(error), "see docs/how-to/migrate-to-streams.md") from error
    return after


def _begin(facts: Facts, request: Request, after: Json) -> tuple[Plan, Change, tuple[Finding, ...]]:
    patch, undo = template.difference(facts.template, after), template.difference(after, facts.template)
    if not patch:
        why = "no change of the template is given, or the template says it already"
        raise CliError(f"StreamApp {facts.view.name}", why, "name what switches the protocol: --env or --patch")
    _require_pod(facts, trial.fault_of_spec(facts.resource, after))
    found = checks.findings(facts, request.to)
    scalers = facts.autoscalers if isinstance(facts.autoscalers, tuple) else ()
    parked = tuple(map(steps.parked_of, scalers))
    first = steps.began(facts, request.to, patch, undo, parked)
    if len(str(first.patch)) > MOST_BYTES:
        raise CliError(f"StreamApp {facts.view.name}", "the change is too large to be recorded", "change less at once")
    return plan_of(facts, request.to, patch, tuple(one.name for one in parked)), first, found


def _require_pod(facts: Facts, fault: str) -> None:
    """Refuse a template that no pod could be made of; nothing was written."""
    if fault:
        what = f"StreamApp {facts.view.name}: the changed template"
        raise CliError(what, plain(f"no pod could be made of it: {fault}"), "correct --patch or --env")


async def _proceed(target: Target, request: Request, prepared: _Prepared) -> "_Loop":
    async with _reach(target, request) as way:
        loop = _Loop(way.client, way.connection, way.key, request)
        if prepared.first is not None:
            await loop.write_first(prepared.facts, prepared.first)
        await loop.until_done()
        return loop


@dataclass(slots=True)
class _Loop:
    """The looks and writes of one run."""

    client: KubeClient
    connection: ClusterConnection
    key: Key
    request: Request
    clock: OperatorClock = field(default_factory=OperatorClock)
    progress: Progress = field(default_factory=Progress)
    conflicts: int = 0
    waits_since: tuple[str, datetime] | None = None
    told: str = ""

    async def write_first(self, facts: Facts, first: Change) -> None:
        """Begin, on the version that the user was shown; the operator's own writes since do not count."""
        while True:
            try:
                await requests.write(self.client, self.connection, facts, first)
            except ConflictError:
                before = facts
                facts = await self._facts()
                if facts.resource["spec"] != before.resource["spec"] or facts.record != before.record:
                    why = "another writer changed the StreamApp meanwhile; nothing was written"
                    raise CliError(f"StreamApp {self.key}", why, "run the command again") from None
                self._count_conflict()
                continue
            self._say(first.says)
            self.conflicts = 0
            return

    async def until_done(self) -> None:
        """Look and write in turn. CliError: it cannot go on, a write failed, or time has run out."""
        while True:
            facts = await self._facts()
            self.progress = self.progress.after(facts)
            step = steps.next_step(facts, self.progress)
            match step:
                case Done():
                    return
                case Stop(why, next_step):
                    raise CliError(f"StreamApp {self.key}", plain(why), next_step)
                case Wait():
                    await self._wait(step)
                case Change() | PatchAutoscaler():
                    await self._write(facts, step)

    async def _facts(self) -> Facts:
        """Look; an API server that is away for a moment is waited for, as everything is on record."""
        while True:
            try:
                return await requests.read_facts(
                    self.client, self.connection, self.key, self.request.operator_namespace, self.clock
                )
            except UnauthenticatedError:
                raise
            except UnavailableError as error:
                await self._wait_for("connection", f"the API server does not answer: {error.why}")
            except KubeError:
                raise

    async def _wait(self, step: Wait) -> None:
        record = self.progress.record
        passed = "" if record is None else f" ({durations.short(self.clock.now() - record.stage_at)})"
        await self._wait_for(step.stage.value, step.what, passed)

    async def _wait_for(self, stage: str, what: str, passed: str = "") -> None:
        now = watch.now()
        if self.waits_since is None or self.waits_since[0] != stage:
            self.waits_since = stage, now
        elif now - self.waits_since[1] > self.request.timeout:
            why = f"waited {durations.short(self.request.timeout)} in stage {stage}: {plain(what)}"
            step = f"look at `kubectl streamapp explain {self.key.name}`, then run the command again, or with --abort"
            raise CliError(f"StreamApp {self.key}", why, step)
        if self.told != (told := f"{stage:<7} {plain(what)}"):
            self.told = told
            self._say(f"{told}{passed}")
        await pause()

    async def _write(self, facts: Facts, step: Change | PatchAutoscaler) -> None:
        try:
            await requests.write(self.client, self.connection, facts, step)
        except ConflictError:
            self._count_conflict()
            return
        self.conflicts = 0
        self._say(step.says)

    def _count_conflict(self) -> None:
        self.conflicts += 1
        if self.conflicts > MOST_CONFLICTS:
            why, step = "other writers changed it before each attempt", "find out who, then run the command again"
            raise CliError(f"StreamApp {self.key}", why, step)

    @staticmethod
    def _say(words: str) -> None:
        click.echo(f"{watch.now():%H:%M:%S}  {words}", err=True)


def _refusal(facts: Facts, refused: tuple[Finding, ...]) -> CliError:
    why = "; ".join(f"{one.check.name}: {one.detail}" for one in refused)
    fix = refused[0].check.fix
    return CliError(f"migrate StreamApp {facts.view.name}", plain(why), fix[0].lower() + fix[1:])


def _show_plan(plan: Plan, found: tuple[Finding, ...], output: Output, *, dry_run: bool) -> None:
    if output is not Output.TABLE:
        document = {"name": plan.name, "dryRun": dry_run, **plan.document}
        console.write({**document, "findings": [one.document for one in found]}, output)
        return
    lines = [Text(plan.name, style="bold"), *map(Text, plan.sentences), Text("")]
    for one in found:
        mark, style = _MARKS[one.check.severity]
        lines.append(Text.assemble((f"{mark}  {one.check.name}", style), f"  {one.check.title}"))
        lines.append(Text(f"   {plain(one.detail)}\n   fix: {one.check.fix}"))
    lines.append(Text("Dry run: nothing was written.")) if dry_run else None
    console.show(Group(*lines), Console(stderr=not dry_run, highlight=False, markup=False, emoji=False))


def _show_under_way(facts: Facts, record: Record, output: Output) -> None:
    document = {"name": facts.view.name, "dryRun": True, "to": record.to.value, "stage": record.stage.value}
    document |= {"replicas": record.replicas, "abort": record.is_abort, "change": record.patch}
    if output is not Output.TABLE:
        console.write(document, output)
        return
    word = "aborted, back" if record.is_abort else "under way,"
    console.show(
        Text(
            f"A migration is {word} to the {record.to.value} protocol, stage {record.stage.value}. "
            "Dry run: nothing was written."
        )
    )


def _show_result(facts: Facts, loop: _Loop, found: tuple[Finding, ...], output: Output) -> None:
    record, ended = loop.progress.record, loop.progress.converged_at
    if record is None:
        return
    outage = None if record.stopped_at is None or ended is None else max(timedelta(0), ended - record.stopped_at)
    if output is not Output.TABLE:
        document: Json = {"namespace": loop.key.namespace, "name": loop.key.name, "dryRun": False}
        document |= {"to": record.to.value, "aborted": record.is_abort, "replicas": record.replicas}
        document |= {"outageSeconds": None if outage is None else round(outage.total_seconds(), 1)}
        console.write({**document, "findings": [one.document for one in found]}, output)
        return
    told = "" if outage is None else f" Users waited {durations.short(outage)} from the stop until every task ran."
    back = "It is back on its former template" if record.is_abort else "It runs"
    console.show(Text(f"{facts.view.name}: {back} with the {record.to.value} protocol.{told}"))
