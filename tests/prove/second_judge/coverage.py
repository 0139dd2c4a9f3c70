"""Guarantee 1: what every removal of a pod must rest on."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import HOLD_RECORD, OVERRIDE
from tests.prove.second_judge.ledger import Listener, Look, Write
from tests.prove.second_judge.truth import really_uncovered

Json = dict[str, Any]
SAID_BEFORE = 10.0
"""Seconds that a setting can have been changed before a removal that still rests on it."""
RECORDED_WITHIN = 60.0
"""Seconds without a fault after which an override must be on record."""


@dataclass(slots=True)
class Forced:
    """A removal that only a permission of the user allows."""

    at: float
    before: int
    after: int
    why: str


class Coverage(Listener):
    """Judges removals by the truth behind the last two looks of the process that removed."""

    number = 1
    sentences = (
        "The operator removes a pod that holds tasks only after two consecutive checks find every stateful task "
        "running or caught up on a remaining pod.",
        "A pod without tasks can go earlier.",
        "A user can override the check or allow zero; this is recorded.",
        "Node drains can [wait likewise](docs/how-to/node-drains.md).",
    )

    def __init__(self) -> None:
        self._forced: list[Forced] = []

    def wrote(self, write: Write) -> None:
        """Judge a write that lowers the current replicas, or deletes a pod."""
        replicas = write.replicas()
        if write.process and replicas is not None and replicas[1] < replicas[0]:
            self._removed(write, *replicas)
        if write.request.method == "DELETE" and write.request.plural == "pods" and write.refusal is None:
            self._restarted(write)

    def _removed(self, write: Write, before: int, after: int) -> None:
        ledger = self.stage.ledger
        held = ledger.view().held_from(after)
        looks = ledger.looks[write.process][-2:]
        held |= frozenset(task for look in looks if look.view for task in look.view.held_from(after))
        if not held:
            ledger.stake(1, "removals of pods without tasks")
            return
        uncovered = _uncovered(looks, after)
        if uncovered is None:
            ledger.stake(1, "removals of pods with tasks, behind two checks")
            if really_uncovered(self.stage.group, after, ledger.limit()):
                ledger.stake(1, "of these, removals whose copies had changed since the check")
            return
        why = self._permission(write, after)
        if why is None:
            ledger.wrong(1, f"current replicas {before} → {after}, but {uncovered}")
            return
        ledger.stake(1, f"removals that only a user's word allows: {why}")
        self._forced.append(Forced(write.at, before, after, why))

    def _restarted(self, write: Write) -> None:
        """A pod that is deleted by the operator is one that another template replaces."""
        ledger, ordinal = self.stage.ledger, int(write.request.name.rpartition("-")[2])
        policies = {
            app["spec"].get("rollout", {}).get("policy", "WhenCaughtUp")
            for app in ledger.states_since(write.at - SAID_BEFORE)
            if app is not None
        }
        looks = ledger.looks[write.process][-1:]
        view = looks[0].view if looks else None
        alive = self.stage.group.listed(alive=True)
        runs = {task for one in alive if one.run and one.run.ordinal == ordinal for task in one.running}
        if "Immediate" in policies or not runs or self._has_no_copies():
            return
        ledger.stake(1, "restarts of pods that run tasks")
        others = () if view is None else [t for t in runs if not set(view.good.get(t, ())) - {ordinal}]
        if policies == {"Paused"} or view is None or others:
            what = ", ".join(map(str, others)) or f"policies {policies}, view {view is not None}"
            ledger.wrong(1, f"pod {ordinal} was restarted, but: {what}")

    def _has_no_copies(self) -> bool:
        """Whether no restart can ever be covered: beside the only pod, or without standbys (docs/reasons.md)."""
        shape = self.stage.group.truth.shape
        return self.stage.current() == 1 or (shape.standbys == 0 and not shape.on_demand)

    def _permission(self, write: Write, after: int) -> str | None:
        states = [app for app in self.stage.ledger.states_since(write.at - SAID_BEFORE) if app is not None]
        settings = [app["spec"].get("scaleDown", {}) for app in states]
        if after == 0 and any(one.get("allowZero") for one in settings):
            return "allowZero"
        if any(one.get("policy") == "Immediate" and one.get("reason") for one in settings):
            return "policy Immediate"
        record = json.loads((write.before or {})["metadata"].get("annotations", {}).get(HOLD_RECORD, "{}") or "{}")
        shown = self.stage.app().get("status", {}).get("scaleDown", {}).get("holdId")
        holds = {record.get("hold", {}).get("id"), shown}
        said = {app["metadata"].get("annotations", {}).get(OVERRIDE, "").partition(" ")[0] for app in states}
        if said & (holds - {None}):
            return "the override annotation"
        if any(one.get("onTimeout") == "Proceed" and one.get("reason") for one in settings) and _waited(write):
            return "onTimeout Proceed"
        return None

    def passed(self) -> None:
        """Look whether permissions that were used are on record."""
        due = max(self.stage.disturbed_until(), self.stage.ledger.brokers_back_at) + RECORDED_WITHIN
        for one in [each for each in self._forced if self.stage.now > max(due, each.at + RECORDED_WITHIN)]:
            self._forced.remove(one)
            if not self._is_recorded(one):
                self.stage.ledger.wrong(1, f"no record says that {one.why} allowed {one.before} → {one.after}")

    def _is_recorded(self, forced: Forced) -> bool:
        status = self.stage.app().get("status", {})
        steps = [
            one for one in status.get("lastSteps", ()) if (one["from"], one["to"]) == (forced.before, forced.after)
        ]
        events = [
            write.request.body.get("reason", "")
            for write in self.stage.ledger.writes
            if write.request.plural == "events" and write.at >= forced.at
        ]
        if forced.why == "allowZero":
            return bool(steps) or any(reason.startswith("ScaledDown") for reason in events)
        return any("forced" in one for one in steps) or "ScaledDownWithoutCoverage" in events


def _uncovered(looks: Sequence[Look], after: int) -> str | None:
    """Why two looks do not allow a removal; None: they do."""
    if len(looks) < 2 or any(look.view is None for look in looks):
        return f"{len(looks)} checks, answers: {[look.view is not None for look in looks]}"
    for look in looks:
        tasks = look.view.uncovered(after) if look.view else ()
        if tasks:
            return f"at {look.at:.3f} s no remaining pod had {', '.join(map(str, sorted(tasks)))}"
    return None


def _waited(write: Write) -> bool:
    """Whether the desired replicas had been lower for the shortest timeout, one minute."""
    return write.lower_since is not None and write.at - write.lower_since >= 60.0
