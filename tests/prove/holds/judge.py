"""What the judge asks of a hold: no pod goes while two templates run, and a hold that lasts ends as its user said.

It waits, gives up or proceeds, and never earlier. Time is counted by the world's clock from the moment at which fewer
replicas were desired, or the last pod went. The operator counts from its first look at the pod that goes next, which
is later.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from streamapp.core.facts.ids import TaskId
from tests.prove.holds.overrides import OverrideJudge
from tests.prove.kubelet import Nodes, revision
from tests.prove.scene import TIMEOUT, WHY

Json = dict[str, Any]
IN_TIME = TIMEOUT + 15.0
"""Seconds within which a deadline comes: from the first look on, and with two readings after it."""


class HoldJudge:
    """One story's."""

    def __init__(
        self,
        app: Callable[[], Json | None],
        statefulset: Callable[[], Json | None],
        nodes: Nodes,
        now: Callable[[], float],
    ) -> None:
        self._app, self._statefulset, self._nodes, self._now = app, statefulset, nodes, now
        self.told: set[str] = set()
        """What the status said at any time, as `Stalled=True NoProgress` or `forced by Timeout: ` and why; and that a
        removal was forced in time, if one was."""
        self._gave_up: set[int] = set()
        """Generations of the StreamApp at which the status said that its hold gave up."""
        self._lower_since: float | None = None
        self._replicas = 0
        self._overrides = OverrideJudge()
        self.is_forced = False
        """Whether the latest removal was forced."""

    def changed(self, plural: str, body: Json) -> None:
        """Remember what the status says, and since when fewer replicas are desired."""
        if plural == "streamapps" and body:
            self._note(body)
        if plural in {"streamapps", "statefulsets"}:
            self._count()
            self._overrides.changed(self._app(), self._statefulset())

    def removal(self, replicas: int, record: Json, *, is_late: bool) -> str | None:
        """Say what is wrong with a removal that is written with this record, if anything is.

        Args:
            replicas: How many pods the removal leaves.
            record: The hold record.
            is_late: Whether the user changed something when there was no chance any more to see it.
        """
        app, lower_since = self._app(), self._lower_since
        forced = record.get("step", {}).get("forced", {})
        self.is_forced = bool(forced)
        if app is None:
            return None
        if app["metadata"]["generation"] in self._gave_up:
            return "although its hold gave up and the spec has not changed since"
        if not forced:
            return None
        if forced["by"] == "override":
            return self._overrides.removal(forced["why"], replicas)
        asked = app["spec"].get("scaleDown", {})
        is_at_once = asked.get("policy") == "Immediate" and forced == {"by": "policy", "why": asked["reason"]}
        is_in_time = forced == {"by": "timeout", "why": WHY} and (asked.get("onTimeout") == "Proceed" or is_late)
        if is_at_once or not is_in_time:
            return None if is_at_once else f"forced as {forced}, which no user said"
        waited = self._now() - (self._now() if lower_since is None else lower_since)
        if waited <= IN_TIME:
            self.told.add("forced in time")
        return f"forced after {waited:.1f} s" if waited < TIMEOUT and not is_late else None

    def of_templates(self, replicas: int, *, is_late: bool) -> str | None:
        """Say what is wrong with a removal before the rollout: pods that stay have an older template.

        The truth of this moment is asked, not that of the looks. A pod that came since has the newest template, and a
        write that rests on an older StatefulSet is refused. With a paused rollout all can have one older template.

        Args:
            replicas: How many pods the removal leaves; of these, those that are not desired leave later.
            is_late: As for `removal`.
        """
        app, statefulset = self._app(), self._statefulset()
        if app is None or statefulset is None or is_late:
            return None
        newest, stay = revision(statefulset), min(replicas, app["spec"]["replicas"])
        staying = {ordinal: name for ordinal, name in self._revisions() if ordinal < stay}
        outdated = sorted(ordinal for ordinal, name in staying.items() if name != newest)
        is_kept = app["spec"].get("rollout", {}).get("policy") == "Paused" and len({*staying.values()}) == 1
        return None if not outdated or is_kept else f"although {outdated} stay with an older template"

    def _revisions(self) -> Iterator[tuple[int, str]]:
        """The ordinal of each pod, and the revision of its template."""
        for pod in self._nodes.pods():
            metadata = pod["metadata"]
            yield int(metadata["name"].rpartition("-")[2]), metadata["labels"]["controller-revision-hash"]

    def excused(self, tasks: Iterable[TaskId]) -> frozenset[str]:
        """What the latest removal may cost, if its user said so: copies, but no second pod and no other process ID."""
        if not self.is_forced:
            return frozenset()
        copies = {word for task in tasks for word in (str(task), f"as many copies of {task} as asked for")}
        return frozenset(copies | {"the tasks that it holds"})

    def _note(self, app: Json) -> None:
        status = app.get("status", {})
        for one in status.get("conditions", ()):
            self.told.add(f"{one['type']}={one['status']} {one['reason']}")
            if one["reason"] == "GaveUp" and one.get("observedGeneration") == app["metadata"]["generation"]:
                self._gave_up.add(one["observedGeneration"])
        for step in status.get("lastSteps", ()):
            if "forced" in step:
                self.told.add(f"forced by {step['forced']['by']}: {step['forced']['reason']}")

    def _count(self) -> None:
        app, statefulset = self._app(), self._statefulset()
        before, self._replicas = self._replicas, 0 if statefulset is None else statefulset["spec"]["replicas"]
        if app is None or app["spec"]["replicas"] >= self._replicas:
            self._lower_since = None
        elif self._lower_since is None or self._replicas < before:
            self._lower_since = self._now()
