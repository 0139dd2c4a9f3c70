"""Guarantees 4, 6 and 7: what the operator never does, whatever happens."""

from collections.abc import Sequence
from typing import Any

from streamapp.core.facts.containers import MemberKey
from tests.prove.second_judge.ledger import Listener, Write

Json = dict[str, Any]
KNOWN_AFTER = 20.0
"""Seconds that a setting of the StreamApp can take to reach the StatefulSet before the next removal."""


class Claims(Listener):
    """Judges every request about a volume claim, and what the StatefulSet lets Kubernetes delete."""

    number = 4
    sentences = (
        "The operator has no right to delete a PersistentVolumeClaim; only the retention policy in the StreamApp lets "
        "Kubernetes delete claims.",
        "State that lay unused for longer than `state.maxIdleTime` is removed before the application starts.",
    )

    def wrote(self, write: Write) -> None:
        """Judge a request."""
        request = write.request
        if not write.process:
            return
        if request.plural == "persistentvolumeclaims":
            self.stage.ledger.stake(4, "writes to volume claims")
            if request.method == "DELETE" or _is_marked(write.after):
                self.stage.ledger.wrong(4, f"{request.method} of the volume claim {request.name}")
        if request.plural == "statefulsets" and write.refusal is None and write.after is not None:
            self._judge_retention(write, write.after)
            self._judge_age(write, write.after)
        if request.plural in {"statefulsets", "namespaces"} and request.method == "DELETE":
            self.stage.ledger.wrong(4, f"DELETE of {request.plural} {request.name}")

    def _judge_retention(self, write: Write, after: Json) -> None:
        replicas = write.replicas() or (0, 0)
        is_removal = replicas[1] < replicas[0]
        if is_removal:
            self.stage.ledger.stake(4, "removals that leave a volume claim")
        elif "persistentVolumeClaimRetentionPolicy" not in write.request.body.get("spec", {}):
            return
        told = after["spec"].get("persistentVolumeClaimRetentionPolicy", {}).get("whenScaled", "Retain")
        if told == "Delete" and all(_retention(app) == "Retain" for app in self._states(write.at)):
            self.stage.ledger.wrong(4, "the StatefulSet lets Kubernetes delete claims that the StreamApp retains")

    def _judge_age(self, write: Write, after: Json) -> None:
        """A template that is written has an init container with the age that the StreamApp allows."""
        if "template" not in write.request.body.get("spec", {}):
            return
        self.stage.ledger.stake(4, "templates with the age of state")
        pod = after["spec"]["template"]["spec"]
        options = [option for one in pod.get("initContainers", ()) for option in one.get("args", ())]
        allowed = {f"--max-age={app['spec']['state'].get('maxIdleTime', '20h')}" for app in self._states(write.at)}
        if not allowed & set(options):
            self.stage.ledger.wrong(4, f"the template has none of {sorted(allowed)}, but {options}")

    def _states(self, now: float) -> list[Json]:
        return [app for app in self.stage.ledger.states_since(now - KNOWN_AFTER) if app is not None]


class Writer(Listener):
    """Judges every write to the StreamApp."""

    number = 6
    sentences = ("`spec.replicas` belongs to the user or the autoscaler: the operator never writes it.",)

    def wrote(self, write: Write) -> None:
        """Judge a request."""
        request = write.request
        if not write.process or request.plural != "streamapps":
            return
        self.stage.ledger.stake(6, "writes to the StreamApp")
        if write.after is not None and self.stage.ledger.lower_since is not None:
            self.stage.ledger.stake(6, "of these, writes while desired and current replicas differ")
        if request.subresource != "status":
            self.stage.ledger.wrong(6, f"{request.method} of streamapps/{request.subresource or 'the object itself'}")
        if write.before is not None and (write.after is None or write.after["spec"] != write.before["spec"]):
            self.stage.ledger.wrong(6, "a write of the operator changed the spec of the StreamApp")


class Members(Listener):
    """Judges every LeaveGroup as it arrives."""

    number = 7
    sentences = ("The operator never evicts a live member from the consumer group.",)

    def evicts(self, process: int, members: Sequence[MemberKey]) -> None:
        """Judge one."""
        listed = self.stage.group.truth.members
        for key in members:
            member = listed.get(key.id)
            if member is None:
                self.stage.ledger.stake(7, "evictions of members that have left")
                continue
            self.stage.ledger.stake(7, "evictions")
            if member.is_alive:
                self.stage.ledger.wrong(7, f"process {process} evicted {key.id}, whose container runs")
            run = member.run
            if run is not None and run.ordinal in self.stage.nodes.alive():
                self.stage.ledger.stake(7, "of these, evictions while another container of the ordinal lives")


def _is_marked(body: Json | None) -> bool:
    return body is None or "deletionTimestamp" in body["metadata"]


def _retention(app: Json) -> str:
    return str(app["spec"]["state"].get("retention", {}).get("whenScaled", "Retain"))
