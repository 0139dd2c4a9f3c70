"""Guarantee 8: what the status must say whenever nothing has disturbed the operator for a while."""

from collections import deque
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from tests.conformance import violations
from tests.prove.kubelet import NAME, NAMESPACE
from tests.prove.second_judge.deeds import is_invalid, is_valid
from tests.prove.second_judge.ledger import Listener, Write
from tests.prove.second_judge.truth import lag_of_uncovered
from tests.support.example import NOW

Json = dict[str, Any]
CALM = 20.0
"""Seconds without a fault and without a change by the user, after which the status must be right."""
LOOKED_AGAIN = 5.0
"""Seconds after the end of a stabilization window in which the operator must have written the new target."""
SLACK = 2.0
"""Seconds by which a time in the status can differ: it has whole seconds."""
FAR = "9999-01-01T00:00:00Z"
NOT_PROMISED = {"a hold makes it Reconciling, so that tools would wait for its end"}
"""A law of `tests.conformance` that README does not have: a rollout can wait for the reason for which a hold does."""
FALLING = 70.0
"""Seconds over which a lag is watched before the estimate is judged by it."""


class Explanation(Listener):
    """Judges the status of a StreamApp by the truth, at each look."""

    number = 8
    sentences = (
        "The resource explains every decision: desired and current replicas, the reason of the hold, its start, and an "
        "estimated time if a measured lag decreases.",
    )

    def __init__(self) -> None:
        self._changed_at = -1000.0
        self._lags: deque[tuple[float, int]] = deque()
        self._removed: list[tuple[float, int, int]] = []

    def user_wrote(self, app: Json | None, before: Json | None) -> None:  # noqa: ARG002 (a listener's)
        """The user changed something."""
        self._changed_at = self.stage.now

    def wrote(self, write: Write) -> None:
        """Judge each status by itself; note when current replicas change."""
        replicas = write.replicas()
        if replicas is not None and replicas[0] != replicas[1]:
            self._changed_at = write.at
            if replicas[1] < replicas[0] and write.process:
                self._removed.append((write.at, *replicas))
        lives = self.stage.lives.present
        is_acting = lives is not None and lives.number == write.process
        if is_acting and write.request.subresource == "status" and write.after is not None:
            self.stage.ledger.stake(8, "statuses")
            status, now = write.after["status"], self.stage.loop.now()
            for what in violations(status, generation=write.after["metadata"]["generation"], now=now):
                if what not in NOT_PROMISED:
                    self._wrong(what)
            self._judge_estimate(status)

    def passed(self) -> None:
        """Judge the status that stands."""
        self._remember_lag()
        calm = self.stage.now - max(self._changed_at, self.stage.disturbed_until())
        app = self.stage.app()
        if calm < CALM or self.stage.statefulset() is None:
            return
        status = app.get("status", {})
        self.stage.ledger.stake(8, "looks at a status after calm")
        if status.get("observedGeneration") != app["metadata"]["generation"]:
            self._wrong(f"observedGeneration is {status.get('observedGeneration')} of {app['metadata']['generation']}")
        if status.get("statefulSetReplicas") != self.stage.current():
            self._wrong(f"statefulSetReplicas is {status.get('statefulSetReplicas')}, not {self.stage.current()}")
        if is_invalid(app["spec"]):
            self.stage.ledger.stake(8, "looks at an invalid StreamApp")
            if _conditions(status).get("Stalled", ("", "", ""))[0] != "True":
                self._wrong("an invalid StreamApp is not Stalled")
        elif is_valid(app):
            self._judge_hold(app, status)
            self._judge_steps(status)

    def _judge_hold(self, app: Json, status: Json) -> None:
        desired, current = int(app["spec"].get("replicas", 1)), self.stage.current()
        held, reason, message = _conditions(status).get("ScaleDownHeld", ("", "", ""))
        scale_down = status.get("scaleDown")
        if desired >= current:
            if held == "True" or (scale_down is not None and not self._is_step_open()):
                self._wrong(f"{desired} desired, {current} current, ScaleDownHeld {held}, scaleDown {scale_down}")
            return
        self.stage.ledger.stake(8, "looks at a hold")
        if scale_down is None or not scale_down.get("reason") or not reason or not message:
            self._wrong(f"a scale-down is not explained: {scale_down}, ScaleDownHeld {held} {reason}")
            return
        targets = self._possible_targets(app)
        if scale_down["target"] not in targets and not self._is_step_open():
            self._wrong(f"the scale-down's target is {scale_down['target']}, not one of {sorted(targets)}")
        lower = self.stage.ledger.wait_began
        if held == "True" and lower is not None:
            turned = next(one for one in status["conditions"] if one["type"] == "ScaleDownHeld")["lastTransitionTime"]
            self._judge_start(scale_down.get("since", turned), lower)
        if _seconds(scale_down.get("estimatedCompletionTime", FAR)) < self.stage.now - CALM:
            self.stage.ledger.stake(8, "looks at an estimate that passed long ago")
        self._judge_by_lag(scale_down)

    def _possible_targets(self, app: Json) -> set[int]:
        """A scale-down goes no lower than what was desired at any time within its stabilization window."""
        desired = int(app["spec"].get("replicas", 1))
        window = int(app["spec"].get("scaleDown", {}).get("stabilizationWindow", "30s").removesuffix("s"))
        states = self.stage.ledger.states_since(self.stage.now - window - LOOKED_AGAIN)
        before = {int(one["spec"].get("replicas", 1)) for one in states if one is not None}
        return {one for one in before if one >= desired}

    def _is_step_open(self) -> bool:
        """Whether a removal is not complete, which the status goes on to describe."""
        budget = self.stage.store.get("poddisruptionbudgets", NAMESPACE, NAME)
        return budget is not None and budget["spec"].get("maxUnavailable") == 0

    def _judge_start(self, since: str, lower: float) -> None:
        """A hold that is not recorded yet has its start in the condition alone."""
        if not lower - SLACK <= _seconds(since) <= self.stage.now + SLACK:
            self._wrong(f"the hold's start is {_seconds(since):.0f} s; fewer are desired since {lower:.1f} s")

    def _judge_estimate(self, status: Json) -> None:
        for part in (status.get("scaleDown", {}), status.get("convergence", {})):
            if "estimatedCompletionTime" in part:
                self.stage.ledger.stake(8, "estimates")
                if part.get("lagFalling") is not True:
                    self._wrong(f"an estimate without a falling lag: {part}")
            elif part.get("lagFalling") is True:
                self._wrong(f"a lag falls, and there is no estimate: {part}")

    def _judge_by_lag(self, scale_down: Json) -> None:
        """Compare the estimate with how the awaited copies really did, over a minute."""
        if len(self._lags) < 2 or self._lags[-1][0] - self._lags[0][0] < FALLING - 5:
            return
        lags = [lag for _, lag in self._lags]
        if min(lags) > 0 and lags[0] <= min(lags[1:]):
            self.stage.ledger.stake(8, "looks at a lag that does not fall")
            if "estimatedCompletionTime" in scale_down:
                self._wrong(f"an estimate, though the awaited lag went from {lags[0]} to {lags[-1]} in a minute")
        if lags[-1] > 0 and all(after < before for before, after in pairwise(lags)):
            self.stage.ledger.stake(8, "looks at a lag that falls")
            if not self._has_estimate(scale_down) and self._is_measurable():
                self._wrong(f"no estimate, though the awaited lag fell from {lags[0]} to {lags[-1]} in a minute")

    def _has_estimate(self, scale_down: Json) -> bool:
        """The resource has two places for it: the hold's own, and the one for all copies."""
        convergence = self.stage.app()["status"].get("convergence", {})
        return "estimatedCompletionTime" in scale_down or "estimatedCompletionTime" in convergence

    def _is_measurable(self) -> bool:
        learners = self.stage.app()["spec"].get("learners", {})
        brokers_were_there = self.stage.now - self.stage.ledger.brokers_back_at > FALLING
        return brokers_were_there and learners.get("triggerRebalance", True)

    def _remember_lag(self) -> None:
        if self.stage.ledger.lower_since is None or self.stage.now - self._changed_at < SLACK:
            self._lags.clear()
            return
        lag = lag_of_uncovered(self.stage.group, self.stage.desired(), self.stage.ledger.limit())
        self._lags.append((self.stage.now, lag))
        while self.stage.now - self._lags[0][0] > FALLING:
            self._lags.popleft()

    def _judge_steps(self, status: Json) -> None:
        """A removal is explained while it goes on, by an Event, and by its entry when it is complete."""
        for one in self._removed:
            at, before, after = one
            said = {(step["from"], step["to"]) for step in status.get("lastSteps", ())}
            events = [
                w.request.body.get("reason", "") for w in self.stage.ledger.writes if w.request.plural == "events"
            ]
            self.stage.ledger.stake(8, "removals that must be explained")
            if (before, after) not in said and not any(reason.startswith("ScaledDown") for reason in events):
                self._wrong(f"nothing explains the removal {before} → {after} of {at:.1f} s")
        self._removed.clear()

    def _wrong(self, what: str) -> None:
        self.stage.ledger.wrong(8, what)


def _conditions(status: Json) -> dict[str, tuple[str, str, str]]:
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in status.get("conditions", ())}


def _seconds(time: str) -> float:
    """A time of the API by the world's clock."""
    read = datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return (read - NOW) / timedelta(seconds=1)
