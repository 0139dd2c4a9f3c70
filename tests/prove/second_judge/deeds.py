"""What a user, a node or a broker can do to the stage, by name, with one number each.

The machine's rules call them, now or in ambush: at a call that a process of the operator is about to make.
"""

from collections.abc import Callable
from typing import Any

from streamapp.api.names import HOLD, HOLD_RECORD, OVERRIDE, PROCESS_ID
from streamapp.core.facts.ids import ProcessId
from tests.kube.object_store import clone, marked, merged
from tests.prove.kubelet import BROKEN_IMAGE, NAME, NAMESPACE
from tests.prove.second_judge.stage import Stage

Json = dict[str, Any]

INVALID: tuple[Json, ...] = (
    {"scaleDown": {"policy": "Immediate", "reason": None}},
    {"scaleDown": {"onTimeout": "Proceed", "reason": None}},
    {"kafka": {"bootstrapServers": "kafka 9092"}},
    {"learners": {"source": "OnDemand"}, "agent": {"enabled": False}},
    {"scaleDown": {"stabilizationWindow": "soon"}},
)
SCALE_DOWN: tuple[Json, ...] = (
    {"policy": "Hold", "onTimeout": "Wait", "reason": None},
    {"policy": "Immediate", "reason": "I said so"},
    {"policy": "Hold", "onTimeout": "Proceed", "timeout": "1m", "reason": "time is up"},
    {"policy": "Hold", "onTimeout": "GiveUp", "timeout": "1m", "reason": None},
    {"policy": "Hold", "onTimeout": "Wait", "timeout": "1m", "reason": None},
    {"stabilizationWindow": "20s"},
    {"stabilizationWindow": "0s"},
)
LEARNERS: tuple[Json, ...] = (
    {"acceptableRecoveryLag": 10_000},
    {"acceptableRecoveryLag": 100},
    {"assignor": "Unknown"},
    {"assignor": "HighAvailability"},
    {"triggerRebalance": False},
    {"triggerRebalance": True},
    {"rebalance": "Eager"},
)
POLICIES = ("WhenCaughtUp", "Paused", "Immediate")


class Deeds:
    """All of them, on one stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._first = stage.desired()
        self._healthy: Json | None = None
        of_users = {**self._of_the_app(), **self._of_objects()}
        stage.of_users = frozenset(of_users)
        stage.deeds.update({**of_users, **self._of_the_world()})
        stage.store.changed.append(self._adopt)

    def _of_the_app(self) -> dict[str, Callable[[int], object]]:
        return {
            "scale": self.scale,
            "raise-again": lambda _: self.scale(self._first),
            "pause": lambda on: self.spec(paused=bool(on)),
            "dry-run": lambda on: self.spec(dryRun=bool(on)),
            "hold": lambda on: self.annotate(HOLD, "not today" if on else None),
            "override": self.override,
            "allow-zero": lambda on: self.spec(scaleDown={"allowZero": bool(on)}),
            "scale-down": lambda which: self.spec(scaleDown=SCALE_DOWN[which % len(SCALE_DOWN)]),
            "learners": lambda which: self.spec(learners=LEARNERS[which % len(LEARNERS)]),
            "rollout": lambda which: self.spec(rollout={"policy": POLICIES[which % len(POLICIES)]}),
            "template": lambda which: self.template(f"app:{which}"),
            "broken-template": lambda _: self.template(BROKEN_IMAGE),
            "retention": lambda which: self.spec(
                state={"retention": {"whenScaled": "Delete" if which % 2 else "Retain"}}
            ),
            "max-idle": lambda hours: self.spec(state={"maxIdleTime": f"{hours + 1}h"}),
            "invalid": self.invalid,
            "valid": self.valid,
            "labels": self.labels,
            "delete-app": lambda _: self.delete_app(),
        }

    def _of_objects(self) -> dict[str, Callable[[int], object]]:
        return {
            "scale-statefulset": self.scale_statefulset,
            "delete-statefulset": lambda _: self.delete_statefulset(),
            "forget-record": lambda _: self._on_statefulset({HOLD_RECORD: None}),
            "garble-record": lambda _: self._on_statefulset({HOLD_RECORD: "{"}),
            "budget": self.budget,
            "forget-process-id": self.forget_process_id,
            "wipe": self.wipe,
        }

    def _of_the_world(self) -> dict[str, Callable[[int], object]]:
        nodes = self.stage.nodes
        return {
            "kill": nodes.kill,
            "lose": nodes.lose,
            "delete-pod": nodes.delete,
            "skew": lambda seconds: setattr(nodes.truth, "skew", seconds - 2),
            "controllers-take": lambda seconds: setattr(nodes.truth, "sync", 0.5 + seconds),
            "stops-take": lambda seconds: setattr(nodes.truth, "stop", 2.4 + 4 * seconds),
            "other-process-id": lambda ordinal: self.process_file(ordinal, "-4000-", "-4999-"),
            "own-process-id": lambda ordinal: self.process_file(ordinal, "-4999-", "-4000-"),
            "die": lambda _: self.die(),
            "freeze": self.freeze,
            "brokers-away": self.brokers_away,
            "api-slow": self.api_slow,
            "copies-behind": self.copies_behind,
        }

    # What the user does to the StreamApp.

    def spec(self, **changes: Any) -> None:
        """Change fields of the spec; None removes one."""
        self._put({"spec": changes})

    def scale(self, replicas: int) -> None:
        """Set the desired replicas."""
        self.spec(replicas=replicas)

    def template(self, image: str) -> None:
        """Set the image."""
        self.spec(template={"spec": {"containers": [{"name": "app", "image": image}]}})

    def labels(self, which: int) -> None:
        """Edit labels of the StreamApp and of its pods' template."""
        self._put({"metadata": {"labels": {"team": f"team-{which}"}}})
        if which % 2:
            self.spec(template={"metadata": {"labels": {"tier": f"tier-{which}"}}})

    def annotate(self, name: str, value: str | None) -> None:
        """Write or remove an annotation of the StreamApp."""
        self._put({"metadata": {"annotations": {name: value}}})

    def override(self, which: int) -> None:
        """Override the hold that the status shows; an odd number names a hold that never was."""
        shown = self.stage.app().get("status", {}).get("scaleDown", {}).get("holdId", "h-unknown")
        self.annotate(OVERRIDE, f"{'h-never' if which % 2 else shown} I accept the loss")

    def invalid(self, which: int) -> None:
        """Write a spec that is not valid."""
        if self._healthy is None:
            self._healthy = clone(self.stage.app()["spec"])
        self._put({"spec": INVALID[which % len(INVALID)]})

    def valid(self, _: int) -> None:
        """Write the spec as it was before it was invalid, with the desired replicas of now."""
        if self._healthy is not None:
            app = self.stage.app()
            spec = {**self._healthy, "replicas": app["spec"]["replicas"]}
            self._healthy = None
            self.stage.store.put("streamapps", {**app, "spec": spec})

    def delete_app(self) -> None:
        """Delete the StreamApp in the foreground: it is only marked, since another controller has a finalizer on it."""
        app = self.stage.app()
        if "deletionTimestamp" not in app["metadata"]:
            kept = {**app, "metadata": {**app["metadata"], "finalizers": ["example.com/backup"]}}
            self.stage.store.put("streamapps", marked(kept, self.stage.loop.now()))

    def _put(self, patch: Json) -> None:
        app = self.stage.app()
        changed = merged(clone(app), patch)
        if changed != app:
            self.stage.store.put("streamapps", changed)

    # What the user does to other objects.

    def scale_statefulset(self, replicas: int) -> None:
        """Scale the StatefulSet itself, past the guard."""
        own = self.stage.statefulset()
        if own is not None and own["spec"]["replicas"] != replicas:
            self.stage.store.put("statefulsets", merged(clone(own), {"spec": {"replicas": replicas}}))

    def delete_statefulset(self) -> None:
        """Delete the StatefulSet, and orphan its pods."""
        if self.stage.statefulset() is not None:
            self.stage.store.remove("statefulsets", NAMESPACE, NAME)

    def _adopt(self, plural: str, body: Json, before: Json | None) -> None:
        """A StatefulSet that is made anew adopts the pods that it finds, as its controller does."""
        if plural == "statefulsets" and body and before is None:
            owner = {"ownerReferences": [{"uid": body["metadata"]["uid"], "controller": True}]}
            for pod in self.stage.nodes.pods():
                adopted = {**pod, "metadata": {**pod["metadata"], **owner}}
                self.stage.loop.call_later(0.1, self._adopt_one, adopted)

    def _adopt_one(self, adopted: Json) -> None:
        name, uid = adopted["metadata"]["name"], adopted["metadata"]["uid"]
        live = self.stage.store.get("pods", NAMESPACE, name)
        if live is not None and live["metadata"]["uid"] == uid:
            owners = adopted["metadata"]["ownerReferences"]
            self.stage.store.put("pods", merged(clone(live), {"metadata": {"ownerReferences": owners}}))

    def budget(self, most: int) -> None:
        """Edit the PodDisruptionBudget."""
        own = self.stage.store.get("poddisruptionbudgets", NAMESPACE, NAME)
        if own is not None:
            self.stage.store.put("poddisruptionbudgets", merged(clone(own), {"spec": {"maxUnavailable": most}}))

    def forget_process_id(self, ordinal: int) -> None:
        """Remove the process ID from a volume claim, as the documentation allows."""
        claim = self.stage.store.get("persistentvolumeclaims", NAMESPACE, f"state-{NAME}-{ordinal}")
        if claim is not None:
            patch = {"metadata": {"annotations": {PROCESS_ID: None}}}
            self.stage.store.put("persistentvolumeclaims", merged(clone(claim), patch))

    def wipe(self, ordinal: int) -> None:
        """Delete a volume claim and its pod: the ordinal starts on an empty volume."""
        claim = f"state-{NAME}-{ordinal}"
        if self.stage.store.get("persistentvolumeclaims", NAMESPACE, claim) is None:
            return
        self.stage.nodes.lose(ordinal)
        self.stage.store.remove("persistentvolumeclaims", NAMESPACE, claim)
        self.stage.group.truth.volumes.pop(f"{NAMESPACE}/{claim}", None)
        self.stage.nodes.truth.process_ids.pop(ordinal, None)

    def _on_statefulset(self, annotations: Json) -> None:
        own = self.stage.statefulset()
        if own is not None and own["metadata"].get("annotations", {}).get(HOLD_RECORD) is not None:
            self.stage.store.put("statefulsets", merged(clone(own), {"metadata": {"annotations": annotations}}))

    # What goes wrong in the world.

    def process_file(self, ordinal: int, now: str, then: str) -> None:
        """Change the process file on a volume; the container starts again with it."""
        known = self.stage.nodes.truth.process_ids.get(ordinal)
        if known is not None and now in str(known):
            self.stage.nodes.truth.process_ids[ordinal] = ProcessId.parse(str(known).replace(now, then))
            self.stage.nodes.kill(ordinal)

    def die(self) -> None:
        """The acting process dies."""
        if self.stage.lives.present is not None:
            self.stage.lives.present.die()

    def freeze(self, seconds: int) -> None:
        """The acting process stops, and goes on after that time beside its successor."""
        if self.stage.lives.present is not None:
            self.stage.lives.present.freeze("", seconds)

    def brokers_away(self, seconds: int) -> None:
        """No broker answers for that time."""
        self.stage.group.is_away = True
        self.stage.ledger.brokers_back_at = max(self.stage.ledger.brokers_back_at, self.stage.now + seconds)
        self.stage.loop.call_later(seconds, self._brokers_back)

    def _brokers_back(self) -> None:
        if self.stage.now >= self.stage.ledger.brokers_back_at - 0.001:
            self.stage.group.is_away = False

    def api_slow(self, seconds: int) -> None:
        """Every answer of the API server takes so long, for 40 seconds."""
        self.stage.board.slowness = float(seconds)
        self.stage.ledger.slow_until, self.stage.ledger.slowness = self.stage.now + 40.0, float(seconds)
        self.stage.loop.call_later(40.0, self._api_fast)

    def _api_fast(self) -> None:
        if self.stage.now >= self.stage.ledger.slow_until - 0.001:
            self.stage.board.slowness = 0.0

    def copies_behind(self, thousands: int) -> None:
        """Every copy falls behind by so many thousand records, and cannot come nearer for 45 seconds."""
        behind, truth = thousands * 1000, self.stage.group.truth
        self.stage.group.advance()
        self.stage.loop.call_later(45.0, truth.slow.clear)
        for member in self.stage.group.listed():
            assert member.run is not None
            truth.slow[member.run.volume] = behind
            volume = truth.volumes.setdefault(member.run.volume, {})
            for task in member.standby:
                volume[task] = min(volume.get(task, 0.0), truth.end - behind)


def is_valid(app: Json) -> bool:
    """Neither paused, nor a dry run, nor invalid, nor being deleted."""
    spec = app["spec"]
    is_stopped = spec.get("paused") or spec.get("dryRun") or "deletionTimestamp" in app["metadata"]
    return not is_stopped and not is_invalid(spec)


def is_invalid(spec: Json) -> bool:
    """The machine's own mistakes, as the resource's page names them."""
    scale_down, learners = spec.get("scaleDown", {}), spec.get("learners", {})
    needs_reason = scale_down.get("policy") == "Immediate" or scale_down.get("onTimeout") == "Proceed"
    return bool(
        (needs_reason and not scale_down.get("reason"))
        or " " in spec["kafka"]["bootstrapServers"]
        or (learners.get("source") == "OnDemand" and not spec.get("agent", {}).get("enabled"))
        or scale_down.get("stabilizationWindow") == "soon"
        or (spec.get("replicas") == 0 and not scale_down.get("allowZero"))
    )
