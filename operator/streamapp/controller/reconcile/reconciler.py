"""One pass over one application: gather, decide, apply, report.

Run by the queue for a key that is dirty or due; the same facts always lead to the same steps, so a pass may be cut off
anywhere and run again.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from streamapp.controller.apps.apps import Applications
from streamapp.controller.apps.memory import LastPass
from streamapp.controller.ports import KafkaStepError
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.reconcile.gather import Gathered, Gatherer
from streamapp.controller.reconcile.report import Reporter, gap_seen, log
from streamapp.controller.record.recorder import PassRecorder
from streamapp.core.actions.decision import Decision, Verdict
from streamapp.core.decide import decide
from streamapp.core.doctor.subject import PassFailure
from streamapp.core.status.gaps import Gap, GapUnknown
from streamapp.flightrecord.changes import Look
from streamapp.kube.client.errors import ConflictError, InvalidError, KubeError, RefusedError
from streamapp.kube.client.kinds import Key

AT_ONCE = 0.0
SOON_SECONDS = 2.0
"""After a step that failed for a reason that passes: another writer was faster, or a broker did not answer."""


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
    ) -> None:
        self._now = now
        self._gatherer = gatherer
        self._applier = applier
        self._reporter = reporter
        self._applications = applications
        self._recorder = recorder or PassRecorder.off()

    async def reconcile(self, key: Key) -> float | None:
        """Run one pass; give the seconds after which the next is wanted, None where the StreamApp is gone.

        KubeError where the API server did not do its part: the queue tries again, ever more rarely.
        """
        try:
            return await self._pass(key)
        except KubeError as error:
            self._remember(key, error)
            raise

    async def _pass(self, key: Key) -> float | None:
        gathered = await self._gatherer.gather(key)
        if gathered is None:
            self._applications.remove(key)
            self._reporter.forget(key)
            self._recorder.forget(key)
            return None
        gathered.application.last = LastPass(gathered.streamapp, gathered.snapshot, gathered.policy)
        if await self._applier.fence_hold_record(gathered):
            return AT_ONCE
        decision = decide(gathered.snapshot, gathered.policy)
        gathered.application.memory.episode = decision.convergence.episode
        self._set_pace(gathered, decision)
        failure = await self._apply(gathered, decision)
        gap = gap_seen(gathered, decision)
        self._recorder.record(gathered.key, _look(gathered, decision, gap))
        await self._reporter.report(gathered, decision, gap, done=failure is None)
        self._remember(key, failure)
        if failure is None:
            return decision.requeue_after.total_seconds()
        if not isinstance(failure, ConflictError | InvalidError | KafkaStepError):
            raise failure
        log.warning("step failed", app=str(key), verdict=decision.verdict.value, error=str(failure))
        return SOON_SECONDS

    def _remember(self, key: Key, error: KubeError | KafkaStepError | None) -> None:
        """Keep how a pass failed for who asks; a conflict is none, since it is read again and judged anew."""
        application = self._applications.find(key)
        if application is None:
            return
        failure = None
        if error is not None and not isinstance(error, ConflictError):
            failure = PassFailure(self._now(), str(error), isinstance(error, RefusedError))
        application.memory.failure = failure

    async def _apply(self, gathered: Gathered, decision: Decision) -> KubeError | KafkaStepError | None:
        """Make the plan; give what kept it from being finished."""
        try:
            await self._applier.apply(gathered, decision.plan, self._recorder.step_observer(gathered.key))
            if not gathered.snapshot.app.dry_run and decision.verdict not in {Verdict.STALLED, Verdict.PAUSED}:
                await self._applier.ensure_owned_objects(gathered, decision.plan)
        except InvalidError as error:
            memory, now = gathered.application.memory, gathered.snapshot.now
            memory.record_rejection(gathered.snapshot.app.generation, str(error), now)
            return error
        except (KubeError, KafkaStepError) as error:
            return error
        return None

    def _set_pace(self, gathered: Gathered, decision: Decision) -> None:
        """Have the group polled quickly while something is under way that polling can show."""
        if gathered.application.watch is None:
            return
        at_rest = decision.verdict in {Verdict.STEADY, Verdict.STALLED, Verdict.PAUSED}
        moves = decision.convergence.can_be_told and not decision.convergence.is_converged
        gathered.application.watch.set_poll_rate(is_busy=not at_rest or moves)


def _look(gathered: Gathered, decision: Decision, gap: Gap | GapUnknown | None) -> Look:
    """The pass as the flight record keeps it."""
    return Look(
        streamapp=gathered.streamapp,
        resource=gathered.live.app,
        pods=gathered.live.pods,
        snapshot=gathered.snapshot,
        policy=gathered.policy,
        decision=decision,
        gap=gap,
    )
