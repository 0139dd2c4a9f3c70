"""Guarantee 5: process IDs stay with their volumes, and a mismatch stops every scale-down."""

from typing import TYPE_CHECKING, Any

from streamapp.api.names import PROCESS_ID
from tests.prove.kubelet import NAME, NAMESPACE
from tests.prove.second_judge.deeds import is_valid
from tests.prove.second_judge.ledger import Listener, Write

if TYPE_CHECKING:
    from tests.kube.object_store import Stored

Json = dict[str, Any]
REPORTED_WITHIN = 60.0
"""Seconds without a fault in which the status must report a mismatch."""


class Identity(Listener):
    """Judges what is recorded on claims, and what happens while a pod runs with another process ID."""

    number = 5
    sentences = (
        "An ordinal keeps its process ID as long as its volume lives.",
        "A mismatch is reported and holds every scale-down.",
    )

    def __init__(self) -> None:
        self._since: dict[int, float] = {}

    def wrote(self, write: Write) -> None:
        """Judge records, and removals."""
        if write.process and write.request.plural == "persistentvolumeclaims" and write.refusal is None:
            self._recorded(write)
        replicas = write.replicas()
        if write.process and replicas is not None and replicas[1] < replicas[0]:
            self._removed(write)

    def _recorded(self, write: Write) -> None:
        before, after = _recorded_on(write.before), _recorded_on(write.after)
        ordinal = int(write.request.name.rpartition("-")[2])
        if after == before:
            return
        self.stage.ledger.stake(5, "process IDs recorded on volume claims")
        if before is not None:
            self.stage.ledger.wrong(5, f"the record of ordinal {ordinal} changed from {before} to {after}")
        reported = {str(run.process_id) for run in self.stage.nodes.truth.runs.values() if run.ordinal == ordinal}
        if after not in reported:
            self.stage.ledger.wrong(5, f"ordinal {ordinal} is recorded as {after}, and ran as {sorted(reported)}")

    def _removed(self, write: Write) -> None:
        looks = self.stage.ledger.looks[write.process][-2:]
        if len(looks) < 2:
            return
        for ordinal, claim in self._claims().items():
            seen = [look.view.processes.get(ordinal, frozenset()) if look.view else frozenset() for look in looks]
            if claim is not None and all(any(str(one) != claim for one in processes) for processes in seen):
                self.stage.ledger.wrong(5, f"a removal while ordinal {ordinal} runs as {seen[-1]}, not as {claim}")

    def passed(self) -> None:
        """Look whether mismatches are reported."""
        now, claims = self.stage.now, self._claims()
        for ordinal in range(10):
            run = self.stage.nodes.alive().get(ordinal)
            claim = claims.get(ordinal)
            if run is None or claim is None or run.joined_at is None or str(run.process_id) == claim:
                self._since.pop(ordinal, None)
                continue
            if ordinal not in self._since:
                self._since[ordinal] = now
                self.stage.ledger.stake(5, "mismatches")
            if self.stage.ledger.lower_since is not None:
                self.stage.ledger.stake(5, "looks at a scale-down with a mismatch")
            calm = now - max(self._since[ordinal], self.stage.disturbed_until(), self.stage.ledger.brokers_back_at)
            if calm > REPORTED_WITHIN and is_valid(self.stage.app()) and self._told() != "False":
                self.stage.ledger.wrong(5, f"a mismatch of ordinal {ordinal} is not reported, but {self._told()}")

    def _told(self) -> str:
        conditions = self.stage.app().get("status", {}).get("conditions", ())
        return next((one["status"] for one in conditions if one["type"] == "ProcessIdentityStable"), "nothing")

    def _claims(self) -> dict[int, str | None]:
        """The recorded process IDs, by ordinal."""
        prefix = ("persistentvolumeclaims", NAMESPACE, f"state-{NAME}-")
        found: list[tuple[str, Stored]] = [
            (name, stored)
            for (plural, namespace, name), stored in self.stage.store.objects.items()
            if (plural, namespace) == prefix[:2] and name.startswith(prefix[2])
        ]
        return {int(name.rpartition("-")[2]): _recorded_on(stored.body) for name, stored in found}


def _recorded_on(claim: Json | None) -> str | None:
    found = None if claim is None else claim["metadata"].get("annotations", {}).get(PROCESS_ID)
    return None if found is None else str(found)
