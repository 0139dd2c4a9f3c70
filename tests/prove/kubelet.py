"""The StatefulSet's controller and the kubelets: what becomes of the objects in the store, with its delays.

`Parallel` and `OnDelete`: all missing pods are made at once, all surplus ones are deleted at once, a changed template
touches nobody. A container that ends by itself is started again in its pod, with the same address and process ID; what
became of it is told up to seconds later, in whole seconds of the node's own clock.
"""

import asyncio
import hashlib
import json
import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from streamapp.api.names import POD_NAME_LABEL, ZONE
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.kube.client.kinds import Key
from tests.kube.object_store import ObjectStore, marked
from tests.prove.collector import Collector
from tests.prove.group import Group, Run
from tests.prove.nodes_truth import SIDECAR, NodesTruth, ordinals_of, wall

Json = dict[str, Any]
NAMESPACE = "demo"
NAME = "counter"
KEY = Key(NAMESPACE, NAME)
"""Of the StreamApp in worlds that have one."""
SHOWN_AFTER_LOSS = 40.0
"""Seconds that the pod of a lost node is shown as running, until the controller of nodes has given the node up."""
CLAIM = "state"
"""Of the template of claims."""
APPS_APART = 10_000
"""Between the first containers of two StreamApps, whose addresses differ as well."""
BROKEN_IMAGE = "broken"
"""A pod of this image never starts."""
NO_SPACE = "org.rocksdb.RocksDBException: No space left on device"
"""The last words of an application whose volume is full."""
AFTER_CRASH = 10.0
"""Seconds that a kubelet waits after a container that has crashed, at first."""
MOST_REVISIONS = 64
_REVISIONS: dict[int, tuple[Json, str]] = {}
"""Templates by their identity, with the names of their revisions: what is stored is never changed in place."""


class Nodes:
    """All controllers and kubelets of one StreamApp."""

    def __init__(
        self,
        truth: NodesTruth,
        store: ObjectStore,
        group: Group,
        loop: asyncio.AbstractEventLoop,
        chance: random.Random,
        collector: Collector,
        key: Key = KEY,
    ) -> None:
        self.key = key
        self.truth, self._store, self._group = truth, store, group
        self._collector = collector
        self._loop, self._chance = loop, chance
        self._is_due = False
        self.place: Callable[[str], object] = self.run
        """Told of each new pod by its UID: it runs at once, or where a scheduler puts it."""
        self.is_named = False
        """Whether pods carry their names in a label, as of Kubernetes 1.28 all do."""
        self.zones = ""
        """The zone of each ordinal, a letter each, which pods carry in a label; empty: nobody knows zones."""
        self.sized = False
        """Whether volumes have a size, by which they can be full."""
        self.is_probed = True
        """Whether a pod is ready only once its application takes part; else as soon as its container runs."""
        self._listed: tuple[int, tuple[Json, ...]] = (-1, ())
        """The pods, and the version of the store of which they are."""
        collector.forgets[key] = self._forget_volume
        store.changed.append(self._changed)

    # What befalls them.

    def deeds(self) -> Mapping[str, Callable[[int], object]]:
        """What can happen to them, by the name that a story has for it: to an ordinal, or for so many seconds."""
        return {
            "kill": self.kill,
            "sidecar-ends": self.end_sidecar,
            "wipe": self.wipe,
            "lose": self.lose,
            "delete": self.delete,
            "fill": self.fill,
            "skew": lambda seconds: setattr(self.truth, "skew", seconds),
            "controllers-take": lambda seconds: setattr(self.truth, "sync", seconds),
            "pods-refused": lambda seconds: setattr(self.truth, "refused_until", self._loop.time() + seconds),
            "starts-take": lambda seconds: setattr(self.truth, "start", seconds),
            "stops-take": lambda seconds: setattr(self.truth, "stop", seconds),
        }

    def kill(self, ordinal: int) -> bool:
        """End a container; its pod starts another one."""
        pod = self._pod(ordinal)
        run = None if pod is None else self._run_of(pod)
        if pod is None or run is None or "deletionTimestamp" in pod["metadata"]:
            return False
        uid = pod["metadata"]["uid"]
        self._end(run, "Error")
        self._later(0.3, 2.0, lambda: self._start(uid))
        return True

    def end_sidecar(self, ordinal: int) -> bool:
        """End the container beside the application's; the next one begins within the same second."""
        pod = self._pod(ordinal)
        if pod is None or len(pod["spec"]["containers"] or ()) == 1 or not self._runs_of(pod["metadata"]["uid"]):
            return False
        uid = pod["metadata"]["uid"]
        ends = self.truth.sidecar_ends.setdefault(uid, [])
        ends.append((ends[-1][1] if ends else self._runs_of(uid)[0].started, self._time()))
        self._report_soon(uid)
        return True

    def _crash(self, run: Run) -> None:
        """End a container that found no space; the next one is started after a pause."""
        if run.is_alive:
            self._end(run, "Error")
            self._later(AFTER_CRASH, AFTER_CRASH + 2, lambda: self._start(run.pod_uid))

    def wipe(self, ordinal: int) -> bool:
        """End a container uncleanly under exactly-once: the next one finds no state that it may use."""
        is_done = self.kill(ordinal)
        if is_done:
            self._group.truth.volumes[self.volume(ordinal)] = {}
        return is_done

    def fill(self, ordinal: int) -> bool:
        """Leave no space on a volume: its container ends, and so does each that follows until the volume has grown."""
        claim = self._claim_of(ordinal)
        if claim is not None:
            self.truth.full[ordinal] = _size(claim)
        return claim is not None and self.kill(ordinal)

    def lose(self, ordinal: int) -> bool:
        """Take a node away: nobody sees its container end, and its pod is shown as it was for a while."""
        pod = self._pod(ordinal)
        run = None if pod is None else self._run_of(pod)
        if pod is None or run is None:
            return False
        run.is_lost = True
        self._end(run, "")
        self.truth.lost_nodes[ordinal] = self._loop.time() + SHOWN_AFTER_LOSS + 5
        self._loop.call_later(SHOWN_AFTER_LOSS, self._remove_of, pod["metadata"]["uid"])
        return True

    def delete(self, ordinal: int) -> bool:
        """Delete a pod as its user does."""
        pod = self._pod(ordinal)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return False
        self._store.put("pods", marked(pod, self._wall()))
        return True

    def alive(self) -> dict[int, Run]:
        """The containers that run, by ordinal."""
        return {run.ordinal: run for run in self.truth.runs.values() if run.is_alive}

    def pods(self) -> tuple[Json, ...]:
        """The pods as the API server has them."""
        version, pods = self._listed
        if version != self._store.version:
            objects = self._store.objects
            own = (one for one in objects if one[0] == "pods" and self._has_pod(one[1], one[2]))
            pods = tuple(objects[one].body for one in sorted(own))
            self._listed = self._store.version, pods
        return pods

    def volume(self, ordinal: int) -> str:
        """The claim of an ordinal, with its namespace."""
        return f"{self.key.namespace}/{CLAIM}-{self.key.name}-{ordinal}"

    def is_own(self, plural: str, body: Json) -> bool:
        """Whether an object is of this StreamApp."""
        namespace, name = body["metadata"].get("namespace", ""), body["metadata"]["name"]
        if plural == "pods":
            return self._has_pod(namespace, name)
        if plural == "persistentvolumeclaims":
            return self._has_pod(namespace, name.removeprefix(f"{CLAIM}-"))
        return bool((namespace, name) == (self.key.namespace, self.key.name))

    def _has_pod(self, namespace: str, name: str) -> bool:
        return namespace == self.key.namespace and name.rpartition("-")[0] == self.key.name

    def _forget_volume(self, ordinal: int) -> None:
        self.truth.process_ids.pop(ordinal, None)
        self._group.truth.volumes.pop(self.volume(ordinal), None)
        for run in self.truth.runs.values():
            run.is_past |= run.ordinal == ordinal and not run.is_alive

    # The StatefulSet's controller.

    def _changed(self, plural: str, body: Json, before: Json | None) -> None:
        if not self.is_own(plural, body or before or {}):
            return
        if plural == "statefulsets" and body and (before is None or before["spec"] != body["spec"]):
            self._sync_soon()
        if plural == "persistentvolumeclaims" and not body:
            self._sync_soon()  # a pod may wait for the end of its former claim
        if plural == "persistentvolumeclaims" and body and self.sized and _size(body) != _asked(body):
            name = body["metadata"]["name"]
            self._later(1.0, 5.0, lambda: self._expand(name))
        is_marked = plural == "pods" and "deletionTimestamp" in body.get("metadata", {})
        if is_marked and before is not None and "deletionTimestamp" not in before["metadata"]:
            uid = body["metadata"]["uid"]
            self._later(self.truth.stop / 24, self.truth.stop, lambda: self._stop(uid))

    def _sync_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._later(self.truth.sync / 10, self.truth.sync, self._sync)

    def _sync(self) -> None:
        self._is_due = False
        live = self._store.get("statefulsets", self.key.namespace, self.key.name)
        if live is None or "deletionTimestamp" in live["metadata"]:
            return  # nothing is made or removed any more
        present = {_ordinal(pod): pod for pod in self.pods()}
        wanted = ordinals_of(live)
        for ordinal in wanted:
            if ordinal not in present and self._collector.is_stale(live, ordinal):
                continue
            may_be_made = max(self.truth.lost_nodes.get(ordinal, 0.0), self.truth.refused_until)
            if ordinal not in present and may_be_made <= self._loop.time():
                self._create(ordinal, live)
            elif ordinal not in present:
                self._later(5.0, 5.1, self._sync_soon)
        self._collector.own_claims(live, {_ordinal(pod): pod for pod in self.pods()})
        for ordinal, pod in present.items():
            if ordinal not in wanted and "deletionTimestamp" not in pod["metadata"]:
                self._store.put("pods", marked(pod, self._wall()))
        self._tell_status()

    def _tell_status(self) -> None:
        live = self._store.get("statefulsets", self.key.namespace, self.key.name)
        if live is None:
            return
        status = {
            "observedGeneration": live["metadata"]["generation"],
            "updateRevision": revision(live),
            "replicas": len(self.pods()),
        }
        if live.get("status") != status:
            self._store.put("statefulsets", {**live, "status": status})

    def _create(self, ordinal: int, statefulset: Json) -> None:
        self.truth.numbers += 1
        name = f"{self.key.name}-{ordinal}"
        template = statefulset["spec"]["template"]
        labels = {**template["metadata"]["labels"], "controller-revision-hash": revision(statefulset)}
        labels |= {POD_NAME_LABEL: name} if self.is_named else {}
        labels |= {ZONE: self.zones[ordinal]} if ordinal < len(self.zones) else {}
        made = self._store.put(
            "pods",
            {
                "metadata": {
                    "name": name,
                    "namespace": self.key.namespace,
                    "labels": labels,
                    "ownerReferences": [{"uid": statefulset["metadata"]["uid"], "controller": True}],
                },
                "spec": {
                    **{kind: _kept(template["spec"].get(kind)) for kind in ("containers", "initContainers")},
                    "volumes": [{"name": CLAIM, "persistentVolumeClaim": {"claimName": f"{CLAIM}-{name}"}}],
                },
                "status": {},
            },
        )
        claim = f"state-{name}"
        if self._store.get("persistentvolumeclaims", self.key.namespace, claim) is None:
            (made_from,) = statefulset["spec"]["volumeClaimTemplates"]
            metadata = {**made_from["metadata"], "name": claim, "namespace": self.key.namespace}
            size = made_from["spec"]["resources"]["requests"]
            sized = {"spec": made_from["spec"], "status": {"phase": "Bound", "capacity": size}}
            self._store.put("persistentvolumeclaims", {"metadata": metadata, **(sized if self.sized else {"spec": {}})})
        uid = made["metadata"]["uid"]
        image = _application(template["spec"]["containers"])["image"]
        self.truth.broken_pods |= {uid} if image == BROKEN_IMAGE else set()
        self.place(uid)

    def _claim_of(self, ordinal: int) -> Json | None:
        return self._store.get("persistentvolumeclaims", self.key.namespace, f"{CLAIM}-{self.key.name}-{ordinal}")

    def _expand(self, name: str) -> None:
        """Have the driver and the kubelet give a claim what it asks for."""
        claim = self._store.get("persistentvolumeclaims", self.key.namespace, name)
        if claim is not None:
            status = {**claim["status"], "capacity": {"storage": _asked(claim)}}
            self._store.put("persistentvolumeclaims", {**claim, "status": status})
            self.truth.full.pop(int(name.rpartition("-")[2]), None)

    # The kubelets.

    def run(self, pod_uid: str) -> None:
        """Have the kubelet of its node start a pod."""
        if pod_uid not in self.truth.broken_pods:
            self._later(0.8, 3.0, lambda: self._start(pod_uid))

    def _start(self, pod_uid: str) -> None:
        pod = self._pod_of(pod_uid)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        self.truth.numbers += 1
        number, ordinal = self.truth.numbers, _ordinal(pod)
        host = next(
            (run.host for run in self._runs_of(pod_uid)),
            f"10.{1 + number // APPS_APART}.{number % APPS_APART // 250}.{number % 250 + 1}",
        )
        app = self._store.get("streamapps", self.key.namespace, self.key.name)
        seeded = seeded_process_id("" if app is None else app["metadata"]["uid"], Ordinal(ordinal))
        process_id = self.truth.process_ids.setdefault(ordinal, seeded)
        run = Run(f"containerd://{number}", ordinal, self.volume(ordinal), pod_uid, host, process_id, self._time())
        self.truth.runs[run.id] = run
        self._report_soon(pod_uid)
        come_up = self._crash if ordinal in self.truth.full else self._join
        self._later(0.4 + self.truth.start, 2.0 + self.truth.start, lambda: come_up(run))

    def _join(self, run: Run) -> None:
        if run.is_alive:
            run.joined_at = self._loop.time()
            self._group.join(run)
            self._report_soon(run.pod_uid)

    def _stop(self, pod_uid: str) -> None:
        """Asked to end: it does, without leaving the group, and when that was told the pod goes."""
        run = next((one for one in self._runs_of(pod_uid) if one.is_alive), None)
        if any(one.is_lost for one in self._runs_of(pod_uid)):
            return  # nobody is there to end it
        if run is not None:
            self._end(run, "Completed")
            self._later(2.6, 3.0, lambda: self._remove_of(pod_uid))
        else:
            self._remove_of(pod_uid)

    def _remove_of(self, pod_uid: str) -> None:
        pod = self._pod_of(pod_uid)
        if pod is not None:
            self._remove(pod)

    def _remove(self, pod: Json) -> None:
        self._store.remove("pods", self.key.namespace, pod["metadata"]["name"])
        self._sync_soon()

    def _end(self, run: Run, reason: str) -> None:
        self._group.advance()
        run.ended_at, run.ended, run.reason = self._loop.time(), self._time(), reason
        run.words = NO_SPACE if run.ordinal in self.truth.full else ""
        self._group.ended(run)
        self._report_soon(run.pod_uid)

    def _report_soon(self, pod_uid: str) -> None:
        """A kubelet tells what it finds when it looks, sometimes seconds later."""
        longest = 2.5 if self._chance.random() < 0.3 else 0.3
        self._later(0.02, longest, lambda: self._report(pod_uid))

    def _report(self, pod_uid: str) -> None:
        pod, runs = self._pod_of(pod_uid), self._runs_of(pod_uid)
        if pod is None or not runs or runs[-1].is_lost:
            return
        last, *before = reversed(runs)
        container = {
            "name": _application(pod["spec"]["containers"])["name"],
            "containerID": last.id,
            "restartCount": len(before),
            "state": {"running": {"startedAt": last.started}} if last.is_alive else {"terminated": _ended(last)},
        }
        if before:
            container["lastState"] = {"terminated": _ended(before[0])}
        is_ready = last.is_alive and (last.joined_at is not None or not self.is_probed)
        status = {
            "podIPs": [{"ip": last.host}],
            "containerStatuses": [*self._sidecars(pod, runs[0].started), container],
            "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
        }
        if pod["status"] != status:
            self._store.put("pods", {**pod, "status": status})

    def _sidecars(self, pod: Json, began: str) -> list[Json]:
        """What a kubelet tells of the containers beside the application's, which run as long as their pod."""
        if len(pod["spec"]["containers"]) == 1:
            return []
        uid = pod["metadata"]["uid"]
        ends = self.truth.sidecar_ends.get(uid, [])
        told = {
            "name": SIDECAR["name"],
            "containerID": f"containerd://{uid}-{len(ends)}",
            "restartCount": len(ends),
            "state": {"running": {"startedAt": ends[-1][1] if ends else began}},
        }
        if ends:
            number, (since, at) = len(ends) - 1, ends[-1]
            last = {"containerID": f"containerd://{uid}-{number}", "startedAt": since, "finishedAt": at}
            told["lastState"] = {"terminated": {**last, "exitCode": 1, "reason": "Error"}}
        return [told]

    def _runs_of(self, pod_uid: str) -> list[Run]:
        """In their order."""
        return [run for run in self.truth.runs.values() if run.pod_uid == pod_uid]

    def _pod(self, ordinal: int) -> Json | None:
        return self._store.get("pods", self.key.namespace, f"{self.key.name}-{ordinal}")

    def _pod_of(self, uid: str) -> Json | None:
        return next((pod for pod in self.pods() if pod["metadata"]["uid"] == uid), None)

    def _run_of(self, pod: Json) -> Run | None:
        return next((run for run in self._runs_of(pod["metadata"]["uid"]) if run.is_alive), None)

    def _later(self, least: float, most: float, then: Callable[[], object]) -> None:
        self._loop.call_later(self._chance.uniform(least, most), then)

    def _wall(self) -> datetime:
        return wall(self._loop)

    def _time(self) -> str:
        """By the node's clock, in whole seconds as the API has them."""
        return (self._wall() + timedelta(seconds=self.truth.skew)).strftime("%Y-%m-%dT%H:%M:%SZ")


def revision(statefulset: Json) -> str:
    """The name of a template's revision."""
    template = statefulset["spec"]["template"]
    known, name = _REVISIONS.get(id(template), (None, ""))
    if known is not template:
        if len(_REVISIONS) >= MOST_REVISIONS:
            _REVISIONS.clear()
        name = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]
        _REVISIONS[id(template)] = template, name
    return name


def _application(containers: list[Json]) -> Json:
    return next(one for one in containers if one["name"] != SIDECAR["name"])


def _kept(containers: list[Json] | None) -> list[Json]:
    """What the operator reads of containers: their names and mounts."""
    return [{part: one[part] for part in ("name", "volumeMounts") if part in one} for one in containers or ()]


def _ended(run: Run) -> Json:
    said = {"exitCode": 1, "startedAt": run.started, "message": run.words} if run.words else {}
    return {"containerID": run.id, "finishedAt": run.ended, "reason": run.reason, **said}


def _size(claim: Json) -> str:
    return str(claim.get("status", {}).get("capacity", {}).get("storage", _asked(claim)))


def _asked(claim: Json) -> str:
    return str(claim["spec"]["resources"]["requests"]["storage"])


def _ordinal(pod: Json) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])
