"""Guarantee 2: what must never remove a pod, and what the operator must not leave behind."""

from typing import Any

from streamapp.api.names import HOLD
from tests.prove.kubelet import NAME, NAMESPACE
from tests.prove.second_judge.ledger import Listener, Write

Json = dict[str, Any]
FRESH = 30.0
"""Seconds that the last answers of the brokers and of the API server can be old."""
LEARNED_WITHIN = 3.0
"""Seconds in which the operator must have learned of a raise, a pause or a hold, without slow answers."""
STALE_FOR = 20.0
"""The same while faults strike: a request can be on its way for ten seconds, and a read can be from the past."""
CLOSED_FOR = 60.0
"""Seconds without a fault in which the disruption budget must be open again, if no step is open."""
STEP = 660.0
"""Seconds after a removal in which its step can be open."""


class Facts(Listener):
    """Judges removals by what the process could know, and what is left when nothing goes on."""

    number = 2
    sentences = (
        "Unknown, stale, partial, contradictory or erroneous facts never remove a pod.",
        "Nor does an operator that is down, slow, replaced, frozen or cut off.",
        "It leaves little behind: the PodDisruptionBudget as it last wrote it, for seconds a probe member, for minutes "
        "an announcement to agents.",
        "With the streams protocol it can leave [raised standbys](docs/streams-protocol.md#learners-on-demand).",
        "An operator that wakes up after losing the Lease sends nothing, and its successor's record refuses a late "
        "removal.",
    )

    def __init__(self) -> None:
        self._newest = 0
        self._succeeded: dict[int, float] = {}
        """When a successor of a process first wrote to the StatefulSet."""
        self._removed_at = -10_000.0
        self._closed_since: float | None = None

    def wrote(self, write: Write) -> None:
        """Judge removals, of whatever pods."""
        replicas = write.replicas()
        if not write.process:
            return
        if write.request.plural == "statefulsets" and write.refusal is not None:
            if write.process < self._newest:
                self.stage.ledger.stake(2, "late writes of a former process that were refused")
            return
        if replicas is not None and replicas[1] < replicas[0]:
            self._removed_at = write.at
            for what in self._wrongs(write, replicas[1]):
                self.stage.ledger.wrong(2, f"current replicas {replicas[0]} → {replicas[1]}, but {what}")
        if write.request.plural == "statefulsets":
            for former in range(1, write.process):
                self._succeeded.setdefault(former, write.at)
            self._newest = max(self._newest, write.process)

    def _wrongs(self, write: Write, after: int) -> list[str]:
        ledger, wrongs = self.stage.ledger, []
        looks = ledger.looks[write.process]
        ledger.stake(2, "removals whose facts were checked")
        if not looks or looks[-1].view is None:
            wrongs.append("the brokers had not answered the last question of this process")
        elif write.at - looks[-1].at > FRESH:
            wrongs.append(f"the group was described {write.at - looks[-1].at:.1f} s ago")
        for plural in ("pods", "statefulsets"):
            read = ledger.reads.get((write.process, plural), -1000.0)
            if write.at - read > FRESH:
                wrongs.append(f"{plural} were read {write.at - read:.1f} s ago")
        if write.process < self._newest:
            ledger.stake(2, "removals by a former process")
        if ledger.reads.get((write.process, "statefulsets"), -1000.0) < self._succeeded.get(write.process, -2000.0):
            wrongs.append(f"a successor of process {write.process} had already written")
        return [*wrongs, *self._forbidden(write, after)]

    def _forbidden(self, write: Write, after: int) -> list[str]:
        """What every state of the StreamApp said for longer than it takes to learn it."""
        disturbed = write.at - self.stage.disturbed_until() < STALE_FOR
        slow = 8 * self.stage.ledger.slowness if self.stage.ledger.slow_until > write.at - 20 else 0.0
        window = (STALE_FOR if disturbed else LEARNED_WITHIN) + slow
        states = self.stage.ledger.states_since(write.at - window)
        return [what for what in _brakes(states[0], after) if all(what in _brakes(one, after) for one in states)]

    def passed(self) -> None:
        """Count what could have gone wrong, and look for what was left behind."""
        ledger, now = self.stage.ledger, self.stage.now
        if ledger.lower_since is not None:
            if self.stage.group.is_away:
                ledger.stake(2, "looks at a scale-down while no broker answered")
            if self.stage.lives.present is None:
                ledger.stake(2, "looks at a scale-down while no process acted")
            if now - ledger.struck_at < 2.0:
                ledger.stake(2, "faults that struck a scale-down")
        self._look_at_the_budget(now)

    def _look_at_the_budget(self, now: float) -> None:
        budget = self.stage.store.get("poddisruptionbudgets", NAMESPACE, NAME)
        is_closed = budget is not None and budget["spec"].get("maxUnavailable") == 0
        app = self.stage.app()
        is_ours = _is_acting(app)
        if not is_closed or not is_ours or self.stage.group.truth.follow_up:
            self._closed_since = None
            return
        if self._closed_since is None:
            self._closed_since = now
            self.stage.ledger.stake(2, "closed disruption budgets")
        calm = now - max(self._closed_since, self.stage.disturbed_until(), self.stage.ledger.brokers_back_at)
        if calm > CLOSED_FOR and now - self._removed_at > STEP:
            self.stage.ledger.wrong(
                2, f"the disruption budget is closed since {self._closed_since:.1f} s without a step"
            )
            self._closed_since = now


def _is_acting(app: Json) -> bool:
    """Whether the operator can act on it at all."""
    spec = app["spec"]
    return not (spec.get("paused") or spec.get("dryRun") or "deletionTimestamp" in app["metadata"])


def _brakes(app: Json | None, after: int) -> list[str]:
    """What forbids a removal to so many replicas."""
    if app is None:
        return ["the StreamApp is gone"]
    spec, annotations = app["spec"], app["metadata"].get("annotations", {})
    found = {
        "the desired replicas were higher": int(spec.get("replicas", 1)) > after,
        "the StreamApp was paused": spec.get("paused"),
        "it was a dry run": spec.get("dryRun"),
        "the user held it": HOLD in annotations,
        "it was being deleted": "deletionTimestamp" in app["metadata"],
        "zero was not allowed": after == 0 and not spec.get("scaleDown", {}).get("allowZero"),
    }
    return [what for what, is_so in found.items() if is_so]
