"""One pass over one application: gather, decide, apply, report.

Run by the queue for a key that is dirty or due; the same facts always lead to the same steps, so a pass may be cut off
anywhere and run again.

A raise comes first: it is made on the StreamApp and the StatefulSet alone, before anything else is read. A raise that
is received while a pass reads or makes its plan ends the pass.

A pass begins with what the watches told. That is enough to raise and to report, and at rest to do nothing. Where there
is more to do, the pass is run again from its beginning on live reads, and only what those show is done.
"""

import asyncio
import math
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from streamapp.controller.apps.apps import Application, Applications
from streamapp.controller.apps.long_plays import LongPlays
from streamapp.controller.apps.memory import LastPass, Memory, Unreported
from streamapp.controller.apps.restore_places import RestorePlaces
from streamapp.controller.leader.leadership import NotLeadingError
from streamapp.controller.ports import KafkaStepError
from streamapp.controller.reconcile.apply import Applier, RaisePendingError, StepObserver
from streamapp.controller.reconcile.forecasts import ForecastNews
from streamapp.controller.reconcile.gather import (
    Gathered,
    Gatherer,
    OtherInstallation,
    ReplicaFacts,
    has_unplaced_members,
)
from streamapp.controller.reconcile.report import Reporter, events_of, gap_seen, log, note_running
from streamapp.controller.record.recorder import PassRecorder
from streamapp.core.actions.decision import Decision, Event, Step, Verdict
from streamapp.core.actions.eviction_turns import eviction_turns_after
from streamapp.core.decide import AT_REST, decide, decide_raise, made_raise
from streamapp.core.doctor.subject import PassFailure
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.snapshot import Raise
from streamapp.core.reasons import Reason
from streamapp.core.status.gaps import Gap, GapUnknown
from streamapp.flightrecord.changes import Look
from streamapp.kube.client.errors import ConflictError, InvalidError, KubeError, RefusedError
from streamapp.kube.client.kinds import Key

AT_ONCE = 0.0
REST_SECONDS = 60.0
"""Between two passes at rest that nothing asked for; whatever changes is told by a watch or a poll."""
SOON_SECONDS = 2.0
"""After a step that failed for a reason that passes: another writer was faster, or a broker did not answer."""
SECRETS_SECONDS = 10.0
"""While a group cannot be read with what its Secrets say: they may be put right, and no watch tells of it."""
FENCE_AFTER_SECONDS = 0.5
"""After so long a pass that must wait for the list of a namespace fences the hold record first."""
OF_THE_PASS_SECONDS = 1.0
"""After the time for which the API server wanted to be left alone: until then no raise beside the pass is tried."""
OF_OTHERS_SECONDS = 60.0
"""Between two looks at a StreamApp of another installation: it can be handed over."""


class Reconciler:
    """Runs passes."""

    def __init__(
        self,
        gatherer: Gatherer,
        applier: Applier,
        reporter: Reporter,
        applications: Applications,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        recorder: PassRecorder | None = None,
        *,
        scaling_pause_seconds: float = math.inf,
    ) -> None:
        self._now = now
        self._scaling_pause_seconds = scaling_pause_seconds
        self._gatherer = gatherer
        self._applier = applier
        self._reporter = reporter
        self._applications = applications
        self._recorder = recorder or PassRecorder.off()
        self.restores = RestorePlaces()
        """The budget of learners; by default without a limit."""
        self._long_plays = LongPlays()
        self._raises_after: dict[Key, float] = {}
        """When the API server, which refused a raise, wants to be asked for it again; on the loop's clock."""
        self._left_to: dict[Key, str] = {}
        """StreamApps of other installations, by the installation's name."""

    async def reconcile(self, key: Key) -> float | None:
        """Run one pass; give the seconds after which the next is wanted, None where the StreamApp is gone.

        KubeError where the API server did not do its part: the queue tries again, ever more rarely.
        """
        if key not in self._left_to:
            self._reporter.expect_success(key)
        try:
            return await self._pass(key)
        except RaisePendingError:
            log.info("pass ended early", app=str(key))
            return AT_ONCE
        except KubeError as error:
            self._remember(key, error)
            self._stay_awake(key)
            raise

    async def stand_by(self, key: Key, first_round: asyncio.Event) -> None:
        """Return when it is known which StreamApps there are; fence the hold record meanwhile if that takes long.

        A namespace that gives no answer must not delay the fence in another one: a removal that a former process sent
        late would be accepted until then. A fence that fails is made by the pass: no back-off must delay a raise.
        """
        if first_round.is_set():
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(first_round.wait(), FENCE_AFTER_SECONDS)
            return
        try:
            await self._fence(key)
        except KubeError as error:
            log.warning("hold not fenced yet", app=str(key), error=str(error))
        await first_round.wait()

    async def _fence(self, key: Key) -> None:
        facts = await self._gatherer.read_replicas(key)
        if isinstance(facts, ReplicaFacts):
            await self._applier.fence_hold_record(facts, self._gatherer.lease, self._now())

    def longest_pause(self, key: Key) -> float:
        """Return how many seconds a key can wait after a failure: not long while it scales or may scale."""
        return self._scaling_pause_seconds if self._scales(key) else math.inf

    async def _pass(self, key: Key, *, live: bool = False) -> float | None:
        await self._leave_predecessor(key)
        live = live or self._must_be_live(key)
        known = self._applications.find(key)
        facts = await self._gatherer.read_replicas(key, live=live)
        if isinstance(facts, OtherInstallation):
            return self._leave(key, facts.name)
        self._left_to.pop(key, None)
        if not live and (facts is None or facts.application is not known):
            return await self._pass(key, live=True)  # gone, or made anew: nothing that is remembered is of this one
        if facts is None:
            await self._forget(key)
            return None
        on_step = self._recorder.step_observer(key)
        facts, raised = await self._raise(facts, on_step)
        try:
            gathered = await self._gather(facts, raised)
            if await self._applier.fence_hold_record(facts, gathered.snapshot.lease, gathered.snapshot.now):
                return AT_ONCE
            await self._play(gathered)
        except KubeError as error:
            if raised is not None:
                await self._reporter.report_raise(facts, raised, str(error))
            raise
        except RaisePendingError:
            _keep_raise(facts.application.memory, raised)
            raise
        again = await self._rest(gathered, on_step)
        if again is not None:
            return again
        if raised is not None:
            _keep_raise(facts.application.memory, facts.application.memory.raised)
            facts.application.memory.raised = raised
        return await self._pass(key, live=True)

    async def _play(self, gathered: Gathered) -> None:
        if not await self._long_plays.are_over(gathered.snapshot, gathered.policy, gathered.raises):
            raise RaisePendingError

    async def _leave_predecessor(self, key: Key) -> None:
        """Put back the group's setting of a StreamApp that was deleted and made anew under its name.

        No pass has found it gone, and its hold record goes with its StatefulSet.
        """
        application = self._applications.find(key)
        if application is not None and self._applications.is_replaced(key):
            await self._applier.leave_group_as_it_was(key, application)
            self._applications.forget(key)

    async def _forget(self, key: Key) -> None:
        """Drop all of a StreamApp that is gone."""
        application = self._applications.find(key)
        if application is not None:
            await self._applier.leave_group_as_it_was(key, application)
        self._applications.remove(key)
        self._raises_after.pop(key, None)
        self.restores.leave(key)
        self._reporter.forget(key)
        self._recorder.forget(key)

    def _must_be_live(self, key: Key) -> bool:
        """Whether a pass cannot begin with what the watches told: they are silent, or something new must be placed.

        A hold record of another process is fenced on live reads alone.
        """
        application = self._applications.find(key)
        if application is None or not self._gatherer.can_be_told(key):
            return True
        memory = application.memory
        return memory.had_plan or not memory.is_fenced or has_unplaced_members(memory)

    async def raise_first(self, key: Key) -> float:
        """Make a raise by what the watches told, beside whatever runs; the next pass reports it, or tries it again.

        The write carries the version of the StatefulSet: where a watch is behind, nothing is written. Gives for how
        many seconds the API server wants to be left alone, if it refused the raise for that.
        """
        application = self._applications.find(key)
        if application is None or self._is_for_the_pass(key, application):
            return 0.0
        facts = await self._gatherer.read_replicas(key, live=False)
        if not isinstance(facts, ReplicaFacts) or facts.application is not application or facts.statefulset is None:
            return 0.0
        step = decide_raise(facts.app, facts.statefulset, self._gatherer.lease, self._now())
        if step is None:
            return 0.0
        try:
            received = partial(self._applications.received, key)
            await self._applier.raise_replicas(facts, step, self._recorder.step_observer(key), received)
        except KubeError as error:
            if isinstance(error, ConflictError) and self._gatherer.is_overtaken(facts):
                return await self.raise_first(key)  # a write of our own was on its way, and its answer is there
            log.info("raise is left to the pass", app=str(key), error=str(error))
            application.memory.had_plan = True  # so that the pass begins with live reads
            return self._wait_before_raise(key, error)
        application.memory.current_replicas = step.to_replicas
        _keep_raise(application.memory, application.memory.raised)
        application.memory.raised = made_raise(step, facts.statefulset)
        return 0.0

    def _is_for_the_pass(self, key: Key, application: Application) -> bool:
        """Whether the pass makes a raise: it leaves a former group first, reads live, or waits as it was asked to."""
        waits_until = self._raises_after.get(key, -math.inf) + OF_THE_PASS_SECONDS
        is_told = application.memory.is_fenced and self._gatherer.can_be_told(key)
        return self._applications.is_replaced(key) or not is_told or asyncio.get_running_loop().time() < waits_until

    def _wait_before_raise(self, key: Key, error: KubeError) -> float:
        """Note what the API server asks for; give the seconds, no more than a scale-up can wait."""
        seconds = min(error.retry_after_seconds, self._scaling_pause_seconds)
        if seconds > 0:
            self._raises_after[key] = asyncio.get_running_loop().time() + seconds
        return seconds

    async def _raise(self, facts: ReplicaFacts, on_step: StepObserver) -> tuple[ReplicaFacts, Raise | None]:
        """Make a raise, if there is one; give the facts as they are after it.

        If the write fails, the two objects are read again. Where a watch was behind, the raise is made on them at once.
        Else it is the first step of the plan once more: then the failure is reported with all that can be read.
        """
        step = decide_raise(facts.app, facts.statefulset, self._gatherer.lease, self._now())
        memory = facts.application.memory
        made, memory.raised = memory.raised, None
        if (step is None or facts.statefulset is None) and facts.current == facts.app.desired.replicas:
            return facts, made
        _keep_raise(memory, made)
        if step is None or facts.statefulset is None:
            return facts, None
        try:
            received = partial(self._applications.received, facts.key)
            live = await self._applier.raise_replicas(facts, step, on_step, received)
        except NotLeadingError:
            raise
        except KubeError as error:
            log.warning("raise failed", app=str(facts.key), error=str(error))
            if self._wait_before_raise(facts.key, error):
                raise  # whatever else is asked now is refused, too: the queue waits, and the pass begins with the raise
            again = await self._gatherer.read_replicas(facts.key)
            if not isinstance(again, ReplicaFacts):
                return facts, None
            if isinstance(error, ConflictError) and not facts.is_live:
                return await self._raise(again, on_step)
            return again, None
        self._raises_after.pop(facts.key, None)
        return self._gatherer.with_statefulset(facts, live), made_raise(step, facts.statefulset)

    async def _gather(self, facts: ReplicaFacts, raised: Raise | None) -> Gathered:
        """Read the rest; RaisePendingError as soon as a raise is received."""
        gathering = asyncio.ensure_future(self._gatherer.gather(facts, raised))
        raises = self._applications.watch_raises(facts.key, facts.highest)
        try:
            if await raises.comes_after(gathering):
                return gathering.result()
            raise RaisePendingError
        finally:
            gathering.cancel()

    async def _rest(self, gathered: Gathered, on_step: StepObserver) -> float | None:
        """Decide, and do it; give the seconds to the next pass, None where this one must be run again on live reads."""
        key = gathered.key
        gathered, decision = self._decide(gathered)
        if not gathered.is_live and not self._is_all_done(gathered, decision):
            return None
        gathered.application.last = LastPass(gathered.streamapp, gathered.snapshot, gathered.policy)
        note_running(gathered.application.memory, gathered.snapshot, gathered.policy.timing)
        gathered.application.memory.episode = decision.convergence.episode
        gathered.application.memory.had_plan = bool(decision.plan)
        gathered.application.memory.was_converged = decision.convergence.is_converged
        gathered.application.memory.eviction_turns = eviction_turns_after(gathered.snapshot, decision.disruptions)
        self._set_pace(gathered, decision)
        made: list[Step] = []
        try:
            failure = await self._apply(gathered, decision, on_step, made)
        except RaisePendingError:
            _keep(gathered, decision)
            raise
        if failure is None and gathered.is_live:
            _follow_record(gathered, decision)
        true_events = decision.events if failure is None else decision.events_after(made)
        decision, gap = _with_unreported(gathered, decision)
        forecasts = self._reporter.forecasts.note(gathered, decision)
        look = _look(gathered, decision, gap, forecasts)
        self._recorder.record(gathered.key, look)
        events = _events_to_send(gathered, decision, true_events, failure)
        await self._reporter.report(gathered, decision, look, events, done=failure is None)
        if events is not None:
            gathered.application.memory.unreported = Unreported()
        self._remember(key, failure)
        if failure is None:
            return _pause(gathered, decision)
        if not isinstance(failure, ConflictError | InvalidError | KafkaStepError):
            raise failure
        log.warning("step failed", app=str(key), verdict=decision.verdict.value, error=str(failure))
        return SOON_SECONDS

    def _decide(self, gathered: Gathered) -> tuple[Gathered, Decision]:
        """Decide within the budget of the application's Kafka cluster; nothing is awaited until that is booked."""
        key, application = gathered.key, gathered.application
        snapshot = self.restores.with_place(key, application, gathered.snapshot)
        decision = decide(snapshot, gathered.policy)
        self.restores.book(key, application, snapshot, decision.restores)
        return gathered if snapshot is gathered.snapshot else replace(gathered, snapshot=snapshot), decision

    def _is_all_done(self, gathered: Gathered, decision: Decision) -> bool:
        """Whether there is nothing to do but to report, by what the watches told."""
        if decision.plan or decision.closed_step is not None:
            return False
        return not _owns_objects(gathered, decision) or self._applier.owned_objects_stand(gathered)

    def _leave(self, key: Key, installation: str) -> float:
        """Write nothing and forget all but the resource, which can be a rival: status and objects are another's."""
        if self._left_to.get(key) != installation:
            self._left_to[key] = installation
            self._applications.forget(key)
            self.restores.leave(key)
            self._reporter.forget(key)
            self._recorder.forget(key)
            log.info("streamapp of another installation", app=str(key), installation=installation)
        return OF_OTHERS_SECONDS

    def _remember(self, key: Key, error: KubeError | KafkaStepError | None) -> None:
        """Keep how a pass failed for who asks; a conflict is none, since it is read again and judged anew."""
        application = self._applications.find(key)
        if application is None:
            return
        failure = None
        if error is not None and not isinstance(error, ConflictError):
            failure = PassFailure(self._now(), str(error), isinstance(error, RefusedError))
        application.memory.failure = failure

    async def _apply(
        self, gathered: Gathered, decision: Decision, on_step: StepObserver, made: list[Step]
    ) -> KubeError | KafkaStepError | None:
        """Make the plan; give what kept it from being finished. Adds the steps that were made to `made`."""

        def observe(step: Step, is_done: bool) -> None:
            on_step(step, is_done)
            made.extend([step] if is_done else ())

        refused: KafkaStepError | None = None
        try:
            try:
                await self._applier.apply(gathered, decision.plan, observe)
            except KafkaStepError as error:
                refused = error  # by brokers, and perhaps for good: Service and budget do not depend on them
            if gathered.is_live and _owns_objects(gathered, decision):
                await self._applier.ensure_owned_objects(gathered, decision, tuple(made))
        except InvalidError as error:
            memory, now = gathered.application.memory, gathered.snapshot.now
            memory.record_rejection(gathered.snapshot.app.generation, str(error), now)
            return error
        except KubeError as error:
            return error
        return refused

    def _scales(self, key: Key) -> bool:
        """Whether desired and current replicas differ, or are unknown, by what was last received and read."""
        application, desired = self._applications.find(key), self._applications.desired(key)
        current = None if application is None else application.memory.current_replicas
        return desired is None or current is None or desired != current

    def _stay_awake(self, key: Key) -> None:
        """After a pass that failed: have each poll ask for the next pass while the application scales."""
        application = self._applications.find(key)
        if application is not None and application.watch is not None and self._scales(key):
            application.watch.set_poll_rate(is_busy=True)

    def _set_pace(self, gathered: Gathered, decision: Decision) -> None:
        """Have the group polled quickly while something is under way that polling can show."""
        if gathered.application.watch is None:
            return
        at_rest = decision.verdict in AT_REST
        moves = decision.convergence.can_be_told and not decision.convergence.is_settled
        decides = not at_rest or decision.needs_fresh_group or (moves and not decision.waits_for_news)
        gathered.application.watch.set_poll_rate(is_busy=not at_rest or moves, decides=decides)


def _owns_objects(gathered: Gathered, decision: Decision) -> bool:
    """Whether Service and budget are to be as the spec wants them."""
    return not gathered.snapshot.app.dry_run and decision.verdict not in {Verdict.STALLED, Verdict.PAUSED}


def _pause(gathered: Gathered, decision: Decision) -> float:
    """Seconds to the next pass if nothing is heard; longer where the clock alone changes nothing."""
    pause = decision.requeue_after.total_seconds()
    if gathered.is_live or not decision.waits_for_news:
        return pause
    if _waits_for_secrets(gathered.application):
        return min(pause, SECRETS_SECONDS)
    return max(pause, REST_SECONDS * random.uniform(0.8, 1.0))  # noqa: S311 (spreads load, protects nothing)


def _waits_for_secrets(application: Application) -> bool:
    readings = application.memory.readings
    is_readable = bool(readings) and isinstance(readings[0].group, GroupDescription)
    return bool(application.client_properties.secrets) and not is_readable


def _follow_record(gathered: Gathered, decision: Decision) -> None:
    """Remember what must be put back as the pass left it on record; without a StatefulSet nothing can stand there."""
    statefulset = gathered.snapshot.workload.statefulset
    if statefulset is not None and statefulset.is_ours:
        gathered.application.memory.follow_written_record(decision.record)


def _keep_raise(memory: Memory, raised: Raise | None) -> None:
    """Keep the Events of a raise for the next report."""
    if raised is not None:
        memory.unreported = replace(memory.unreported, events=(*memory.unreported.events, *events_of(raised)))


def _keep(gathered: Gathered, decision: Decision) -> None:
    """Keep what a pass found for the next report: its record may have been written, and then no pass finds it again."""
    memory, closed = gathered.application.memory, decision.closed_step
    _keep_raise(memory, gathered.snapshot.raised)
    if closed is not None:
        news = tuple(event for event in decision.events if event.reason is Reason.StepClosed)
        memory.unreported = Unreported((*memory.unreported.events, *news), closed, gap_seen(gathered, decision))


def _with_unreported(gathered: Gathered, decision: Decision) -> tuple[Decision, Gap | GapUnknown | None]:
    """Add what was kept to a decision that is about to be reported; give the downtime of its step, too."""
    kept = gathered.application.memory.unreported
    events = tuple(dict.fromkeys((*kept.events, *decision.events)))
    if decision.closed_step is not None or kept.closed_step is None:
        return replace(decision, events=events), gap_seen(gathered, decision)
    return replace(decision, events=events, closed_step=kept.closed_step), kept.gap


def _events_to_send(
    gathered: Gathered,
    decision: Decision,
    true_events: tuple[Event, ...],
    failure: KubeError | KafkaStepError | None,
) -> tuple[Event, ...] | None:
    """The Events of a pass, and those that were kept before.

    What brokers refuse they can refuse for good, so their refusal keeps no Event back. None after a failure of the API
    server: what is true is kept for the next report.
    """
    if failure is None or gathered.snapshot.raised is not None:
        return decision.events
    memory = gathered.application.memory
    events = tuple(dict.fromkeys((*memory.unreported.events, *true_events)))
    if isinstance(failure, KafkaStepError):
        return events
    memory.unreported = replace(memory.unreported, events=events)
    return None


def _look(
    gathered: Gathered, decision: Decision, gap: Gap | GapUnknown | None, forecasts: tuple[ForecastNews, ...]
) -> Look:
    """The pass as the flight record keeps it."""
    return Look(
        streamapp=gathered.streamapp,
        resource=gathered.live.app,
        pods=gathered.live.pods,
        snapshot=gathered.snapshot,
        policy=gathered.policy,
        decision=decision,
        gap=gap,
        forecasts=forecasts,
    )
