"""The order of a run: each part asks its questions, and a part that cannot go on ends the run.

What is judged here is what was seen; a question that was not asked is reported as not tried, with the reason.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from streamapp.api.names import API_VERSION, GROUP, PLURAL, VERSION
from streamapp.cli.cluster import operator_pods
from streamapp.cli.conformance import manifests
from streamapp.cli.conformance.manifests import REPLICAS, SESSION_SECONDS, STABILIZATION_SECONDS
from streamapp.cli.conformance.rows import Question, Row, completed, failed, not_tried, passed
from streamapp.cli.conformance.trial import Identity, Trial, condition
from streamapp.cli.conformance.waits import worst_seconds
from streamapp.cli.errors import CliError
from streamapp.cli.text.durations import fine
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import BUDGETS, CLAIMS, PODS, SERVICES, STATEFUL_SETS, STREAM_APPS

EXPLAIN = "Read `kubectl streamapp doctor`; keep the objects with --keep, and read `kubectl streamapp explain`."
ROOM = "Check --storage-class, and the room on the nodes: `kubectl describe` the pod with --keep."
DOCTOR = "Run `kubectl streamapp doctor`: it names what the operator lacks."
MOST_RAISE_SECONDS = 10.0
RIGHTS = (
    *((STREAM_APPS, verb, "") for verb in ("create", "get", "patch", "delete")),
    *((STATEFUL_SETS, verb, "") for verb in ("create", "get", "patch", "delete")),
    *((PODS, verb, "") for verb in ("create", "get", "list", "patch", "delete")),
    (PODS, "get", "log"),
    *((CLAIMS, verb, "") for verb in ("get", "list", "delete")),
    *((SERVICES, verb, "") for verb in ("get", "patch", "delete")),
    *((BUDGETS, verb, "") for verb in ("get", "list", "patch", "delete")),
)
"""Of the user, in the namespace of the run: kind, verb and subresource."""

GiveBack = Callable[[], Awaitable[tuple[int, tuple[str, ...]]]]
"""Takes the application from the operator; gives the pods that run, and those that restarted meanwhile."""


class RunEndedError(Exception):
    """The next questions cannot be asked."""


@dataclass(slots=True)
class Procedure:
    """One run."""

    trial: Trial
    operator_namespace: str
    most_gap: timedelta
    give_back: GiveBack
    rows: list[Row] = field(default_factory=list)

    async def run(self) -> tuple[Row, ...]:
        """Ask every question in turn."""
        parts: tuple[Callable[[], Awaitable[None]], ...] = (
            self._rights,
            self._definition,
            self._operator,
            self._start,
            self._growth,
            self._scale_down,
            self._restart,
            self._records,
            self._way_back,
        )
        why = "an earlier check failed"
        for part in parts:
            try:
                await part()
            except RunEndedError as error:
                why = str(error)
                break
            except KubeError as error:
                why = f"the API server refused a request: {error.what}: {error.why}"
                break
        return completed(self.rows, why)

    def _add(self, *rows: Row) -> None:
        for row in rows:
            self.trial.say(f"{row.result.value}: {row.question.value}: {row.seen}")
            self.rows.append(row)

    def _end(self, row: Row) -> RunEndedError:
        self._add(row)
        return RunEndedError(f"`{row.question.value}` failed")

    async def _rights(self) -> None:
        missing = [
            f"{verb} {kind.plural}{f'/{part}' * bool(part)}"
            for kind, verb, part in RIGHTS
            if not await self.trial.allows(kind, verb, part)
        ]
        if missing:
            step = f"Ask for a Role in namespace {self.trial.setup.namespace} with these rights."
            raise self._end(failed(Question.RIGHTS, f"missing: {', '.join(missing)}", step))
        self._add(passed(Question.RIGHTS, f"{len(RIGHTS)} of {len(RIGHTS)} rights"))

    async def _definition(self) -> None:
        served = await self.trial.client.versions(GROUP)
        if VERSION not in served:
            step = f"Install it: kubectl apply -f crds/{PLURAL}.{GROUP}.yaml"
            raise self._end(failed(Question.DEFINITION, f"served versions: {', '.join(served) or 'none'}", step))
        self._add(passed(Question.DEFINITION, API_VERSION))
        await self.trial.require_free()

    async def _operator(self) -> None:
        try:
            leader = await operator_pods.find_leader(self.trial.client, self.operator_namespace)
        except CliError as error:
            if "Role" in error.next_step:
                self._add(not_tried(Question.OPERATOR, error.why, _sentence(error.next_step)))
                return
            raise self._end(
                failed(Question.OPERATOR, f"{error.what}: {error.why}", _sentence(error.next_step))
            ) from None
        self._add(passed(Question.OPERATOR, f"pod {leader.pod}"))

    async def _start(self) -> None:
        trial, setup = self.trial, self.trial.setup
        began = time.monotonic()
        await trial.make(PODS, manifests.preload_pod(setup))
        if (
            await trial.until("the topics have their records", self._is_preloaded) is None
            or self._preload != "Succeeded"
        ):
            step = (
                f"Check --image, --bootstrap-servers and the Secret: kubectl logs {setup.pod('preload')} with --keep."
            )
            raise self._end(failed(Question.START, await trial.why_pod(setup.pod("preload")), step))
        await trial.make(STREAM_APPS, manifests.streamapp(setup))
        if await trial.until(f"{REPLICAS} pods are converged", lambda: trial.is_converged(REPLICAS)) is None:
            raise self._end(await self._not_started())
        seconds = time.monotonic() - began
        await trial.make(PODS, manifests.load_pod(setup))
        await trial.make(PODS, manifests.meter_pod(setup))
        if await trial.until("the meter sees outputs", lambda: trial.is_calm_since(0)) is None:
            raise self._end(failed(Question.START, await trial.why_pod(setup.pod("meter")), EXPLAIN))
        self._add(passed(Question.START, f"converged after {_time(seconds)}", seconds))

    async def _not_started(self) -> Row:
        """A pod that no node takes, before what follows from it: the group has no member, for one."""
        trial = self.trial
        why = [await trial.why_pod(f"{trial.setup.name}-{ordinal}") for ordinal in range(REPLICAS)]
        if await trial.is_pending():
            return failed(Question.START, why[0], ROOM)
        return failed(Question.START, f"{await trial.why()}; {'; '.join(why)}", DOCTOR)

    _preload: str = ""

    async def _is_preloaded(self) -> bool:
        pod = await self.trial.pod(self.trial.setup.pod("preload"))
        self._preload = "" if pod is None else str(pod.get("status", {}).get("phase", ""))
        return self._preload in {"Succeeded", "Failed"}

    async def _growth(self) -> None:
        trial, more = self.trial, REPLICAS + 1
        await trial.scale(more)
        seconds = await trial.until(f"the StatefulSet has {more} replicas", lambda: self._has(more))
        if seconds is None or seconds > MOST_RAISE_SECONDS:
            seen = f"no raise: {await trial.why()}" if seconds is None else f"raised after {_time(seconds)}"
            raise self._end(failed(Question.GROWTH, seen, DOCTOR, seconds))
        converged = await trial.until(f"{more} pods are converged", lambda: trial.is_converged(more))
        if converged is None:
            raise self._end(
                failed(Question.GROWTH, f"raised after {_time(seconds)}; {await trial.why()}", EXPLAIN, seconds)
            )
        seen = f"raised after {_time(seconds)}, converged {_time(converged)} later"
        self._add(passed(Question.GROWTH, seen, seconds))

    async def _has(self, replicas: int) -> bool:
        return await self.trial.replicas() == replicas

    async def _scale_down(self) -> None:
        trial = self.trial
        since = await trial.clock_ms()
        watch = _HoldWatch(trial)
        began = time.monotonic()
        await trial.scale(REPLICAS)
        seconds = await trial.until(f"the StatefulSet has {REPLICAS} replicas", watch.look)
        self._add(_of_hold(watch, time.monotonic() - began if seconds is None else seconds))
        if seconds is None:
            raise self._end(failed(Question.STEP, f"still held: {await trial.why()}", EXPLAIN))
        converged = await trial.until(f"{REPLICAS} pods are converged", lambda: trial.is_converged(REPLICAS))
        if converged is None:
            raise self._end(failed(Question.STEP, f"not converged: {await trial.why()}", EXPLAIN))
        self._add(passed(Question.STEP, f"after {_time(seconds)}, converged {_time(converged)} later", seconds))
        worst = await self._worst_since(since)
        self._add(_of_gap(worst, self.most_gap.total_seconds()))

    async def _worst_since(self, since_ms: int) -> float | None:
        """The worst wait since a time of the broker, once no input waits; None if it cannot be measured."""
        now = await self.trial.clock_ms()
        await self.trial.until("no input waits", lambda: self.trial.is_calm_since(now))
        return worst_seconds(await self.trial.waits(), since_ms)

    async def _restart(self) -> None:
        trial = self.trial
        before = await self._identified()
        since = await trial.clock_ms()
        await trial.kill(0)
        seconds = await trial.until("the killed pod is back and converged", lambda: self._is_back(before))
        worst = await self._worst_since(since)
        self._add(_of_eviction(seconds, worst, await trial.why()))
        after = await trial.identity(0)
        stable = condition(await trial.app(), "ProcessIdentityStable")
        self._add(_of_identity(before, after, str(stable.get("status", "Unknown"))), _of_volume(before, after))

    async def _identified(self) -> Identity:
        """The pod 0 with its process ID on record."""
        found: list[Identity] = []

        async def look() -> bool:
            one = await self.trial.identity(0)
            found[:] = [one] if one is not None else []
            return bool(one is not None and one.process)

        await self.trial.until("the process ID is on record", look)
        if not found:
            raise RunEndedError("pod 0 or its volume claim cannot be seen")
        return found[0]

    async def _is_back(self, before: Identity) -> bool:
        after = await self.trial.identity(0)
        return after is not None and after.pod != before.pod and await self.trial.is_converged(REPLICAS)

    async def _records(self) -> None:
        waits = await self.trial.waits()
        if not waits:
            self._add(not_tried(Question.RECORDS, "the log of the meter cannot be read"))
            return
        last = waits[-1]
        seen = f"{last.passed} of {last.answered:,} records without an output"
        step = "Report it, with `kubectl streamapp bundle` of a run with --keep."
        self._add(failed(Question.RECORDS, seen, step) if last.passed else passed(Question.RECORDS, seen))

    async def _way_back(self) -> None:
        try:
            count, restarted = await self.give_back()
        except CliError as error:
            self._add(failed(Question.WAY_BACK, f"{error.what}: {error.why}", _sentence(error.next_step)))
            return
        seen = f"{count} pods run on, {len(restarted)} restarted"
        if restarted or count != REPLICAS:
            self._add(failed(Question.WAY_BACK, seen, EXPLAIN))
        else:
            self._add(passed(Question.WAY_BACK, seen))


@dataclass(slots=True)
class _HoldWatch:
    """What is seen while a scale-down is held."""

    trial: Trial
    reasons: dict[str, None] = field(default_factory=dict)

    async def look(self) -> bool:
        """Note the reason; whether the step was made."""
        told = condition(await self.trial.app(), "ScaleDownHeld")
        if told.get("status") == "True":
            self.reasons[str(told["reason"])] = None
        return await self.trial.replicas() == REPLICAS


def _of_hold(watch: _HoldWatch, seconds: float) -> Row:
    reasons = ", ".join(watch.reasons)
    if watch.reasons and seconds >= STABILIZATION_SECONDS:
        return passed(Question.HOLD, f"held for {_time(seconds)}: {reasons}", seconds)
    seen = f"{_time(seconds)}, reasons: {reasons or 'none'}; at least {STABILIZATION_SECONDS} s were asked for"
    return failed(Question.HOLD, seen, DOCTOR, seconds)


def _of_gap(worst: float | None, most: float) -> Row:
    if worst is None:
        return not_tried(Question.GAP, "the log of the meter cannot be read, or no input came")
    seen = f"{_time(worst)} at most, by the time of the brokers; limit {_time(most)}"
    if worst > most:
        return failed(Question.GAP, seen, "Read docs/how-to/conformance.md: what makes a gap long.", worst)
    return passed(Question.GAP, seen, worst)


def _of_eviction(seconds: float | None, worst: float | None, why: str) -> Row:
    if seconds is None:
        return failed(Question.EVICTION, f"not converged: {why}", DOCTOR, worst)
    if worst is None:
        return not_tried(Question.EVICTION, "the log of the meter cannot be read, or no input came")
    seen = f"users waited {_time(worst)}, converged after {_time(seconds)}; session timeout {SESSION_SECONDS} s"
    if max(seconds, worst) >= SESSION_SECONDS:
        return failed(Question.EVICTION, seen, "Give the operator the right to evict: docs/kafka-rights.md.", worst)
    return passed(Question.EVICTION, seen, worst)


def _of_identity(before: Identity, after: Identity | None, stable: str) -> Row:
    now = "" if after is None else after.process
    seen = f"process ID {before.process or 'unknown'} before, {now or 'unknown'} after; ProcessIdentityStable {stable}"
    if after is None or after.pod == before.pod:
        return not_tried(Question.IDENTITY, "the pod did not come back")
    if before.process and now == before.process and stable == "True":
        return passed(Question.IDENTITY, seen)
    return failed(Question.IDENTITY, seen, EXPLAIN)


def _of_volume(before: Identity, after: Identity | None) -> Row:
    if after is None or after.pod == before.pod:
        return not_tried(Question.VOLUMES, "the pod did not come back")
    seen = f"volume {before.volume} before, {after.volume} after"
    if (before.claim, before.volume) == (after.claim, after.volume) and before.volume:
        return passed(Question.VOLUMES, seen)
    return failed(Question.VOLUMES, seen, "Check who deletes volume claims, and the storage class.")


def _time(seconds: float) -> str:
    return fine(timedelta(seconds=seconds))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"
