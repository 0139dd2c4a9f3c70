"""The restart of one pod that a user asks for: the annotation, what is given up, and what is refused. Pure.

The request names the pod by its UID, so it is over as soon as the pod is gone.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import NEW_VOLUME, RESTART
from streamapp.api.status.translate import MOST_RESTARTS, restart_requests
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.errors import CliError
from streamapp.cli.model.app_view import AppView, view_of
from streamapp.core.facts.policy import LearnerSource, RolloutPolicy
from streamapp.core.facts.snapshot import RestartRequest
from streamapp.kube.client.kinds import Key
from streamapp.kube.objects.from_json import is_ready

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRestart:
    """What is asked of the operator, and what the user gives up for it."""

    view: AppView
    ordinal: int
    pod: Json
    over: frozenset[str]
    """Pods, by UID, that were asked for before the pods were listed, and were gone then: their requests are over.

    Other requests stay: another user can ask for a pod that came while this one thought about the question.
    """
    claim: Json | None
    """The claim that is given up; None if the volume is kept, or is gone already."""
    new_volume: bool

    @property
    def key(self) -> Key:
        """The StreamApp."""
        return Key(self.view.streamapp.metadata.namespace, self.view.streamapp.metadata.name)

    def patch_for(self, resource: Json) -> Json | None:
        """The request, beside those that are not over; None if it is there already."""
        present = view_of(resource, self.view.now)
        if present.streamapp.metadata.uid != self.view.streamapp.metadata.uid:
            raise refusal(present, "it was deleted and created again meanwhile; nothing was written", "run it again")
        require_obeyed(present, self.ordinal, new_volume=self.new_volume)
        annotations = present.streamapp.metadata.annotations
        self._require_no_other(present, restart_requests(annotations))
        wanted = requests_with(annotations, self.pod["metadata"]["uid"], self.over, self.new_volume)
        if len(wanted) > MOST_RESTARTS:
            why = f"{MOST_RESTARTS} restarts are asked for already, and the operator reads no more"
            raise refusal(present, f"{why}; nothing was written", "run it again when pods have restarted")
        text = _text(wanted)
        return None if text == annotations.get(RESTART) else {"metadata": {"annotations": {RESTART: text}}}

    def _require_no_other(self, present: AppView, asked: Iterable[RestartRequest]) -> None:
        """Raise CliError where the pod is to have a new volume already, and this request would keep the volume.

        Its claim can be going: without that request it would hold every restart, this one too, and every scale-down.
        """
        uid = self.pod["metadata"]["uid"]
        if not self.new_volume and any(one.pod_uid == uid and one.new_volume for one in asked):
            why = "a new volume is asked for already; nothing was written"
            raise refusal(present, why, "wait for it, or run it again with --new-volume")

    @property
    def is_uncovered(self) -> bool:
        """Whether no copy is waited for: there can be none, or the user's policy asks for none."""
        status, streamapp = self.view.status, self.view.streamapp
        has_copies = status.learner_source in {LearnerSource.STANDBYS, LearnerSource.ON_DEMAND}
        is_immediate = isinstance(streamapp, StreamApp) and streamapp.spec.rollout.policy is RolloutPolicy.IMMEDIATE
        return is_immediate or not has_copies or streamapp.replicas == 1

    def withdrawal(self, resource: Json) -> Json | None:
        """The annotation without this request; None if it is not there."""
        annotation = resource["metadata"].get("annotations", {}).get(RESTART, "")
        left = [one for one in restart_requests({RESTART: annotation}) if one.pod_uid != self.pod["metadata"]["uid"]]
        return None if not annotation else {"metadata": {"annotations": {RESTART: _text(left) or None}}}

    def sentences(self) -> Iterator[str]:
        """What the restart costs and waits for."""
        name = self.pod["metadata"]["name"]
        if self.is_uncovered:
            restored = " and has restored their state" if self.claim is not None else ""
            yield (
                f"No copy of the tasks of pod {name} is waited for: there is one pod, no copies are known, or "
                f"`rollout.policy` is Immediate. Their users wait until the new pod runs{restored}."
            )
        else:
            yield (
                f"The operator restarts pod {name} when every stateful task that it runs has a caught-up copy on "
                "another pod."
            )
        if self.claim is not None:
            yield (
                f"Volume claim {self.claim['metadata']['name']} ({_size(self.claim)}) is deleted, and Kubernetes "
                "removes it with the pod. The state on it is lost; the new pod restores from Kafka."
            )
        spec = self.view.streamapp.spec if isinstance(self.view.streamapp, StreamApp) else None
        if spec is not None and spec.rollout.policy is RolloutPolicy.PAUSED:
            told = "it starts with the newest one" if self.new_volume else "it is not restarted"
            yield f"`rollout.policy` is Paused: if the pod has an older template, {told}."


def requests_with(
    annotations: Mapping[str, str], pod_uid: str, over: Collection[str], new_volume: bool
) -> list[RestartRequest]:
    """Give the requests with one more.

    Args:
        annotations: Of the StreamApp, as they stand.
        pod_uid: The pod to restart.
        over: Pods whose requests are left out.
        new_volume: Whether its claim is given up.
    """
    left_out = {pod_uid, *over}
    kept = [request for request in restart_requests(annotations) if request.pod_uid not in left_out]
    return [*kept, RestartRequest(pod_uid=pod_uid, new_volume=new_volume)]


def requests_over(annotations: Mapping[str, str], pods: Iterable[Json]) -> frozenset[str]:
    """The pods, by UID, that are asked for and gone; the pods must have been listed after the StreamApp was read."""
    asked = {request.pod_uid for request in restart_requests(annotations)}
    return frozenset(asked - {pod["metadata"]["uid"] for pod in pods})


def _text(requests: Iterable[RestartRequest]) -> str:
    return ", ".join(f"{one.pod_uid} {NEW_VOLUME}" if one.new_volume else one.pod_uid for one in requests)


def require_obeyed(view: AppView, ordinal: int, *, new_volume: bool) -> None:
    """Raise CliError where the operator would not restart this ordinal: one that leaves only if its volume goes."""
    streamapp, name = view.streamapp, view.streamapp.metadata.name
    if not isinstance(streamapp, StreamApp):
        raise refusal(view, f"its spec is invalid: {streamapp.sentence}", "correct the spec first")
    if streamapp.metadata.deletion_timestamp is not None:
        raise refusal(view, "it is being deleted", "no action needed")
    if streamapp.spec.paused:
        raise refusal(view, "it is paused, so the operator restarts nothing", f"kubectl streamapp resume {name}")
    if streamapp.spec.dry_run:
        raise refusal(view, "it is a dry run, so the operator restarts nothing", "remove spec.dryRun")
    if ordinal >= streamapp.replicas and not new_volume:
        raise refusal(
            view,
            f"ordinal {ordinal} is none of the {streamapp.replicas} desired replicas, so its pod leaves",
            f"name an ordinal below {streamapp.replicas}",
        )


def pod_of(view: AppView, ordinal: int, pods: Sequence[Json]) -> Json:
    """The pod of an ordinal; CliError if there is none to restart."""
    name = f"{view.streamapp.metadata.name}-{ordinal}"
    pod = next((one for one in pods if one["metadata"]["name"] == name), None)
    if pod is None:
        raise refusal(view, f"there is no pod {name}", "look at `kubectl streamapp status NAME`")
    if "deletionTimestamp" in pod["metadata"]:
        raise refusal(view, f"pod {name} is being deleted already", "wait until the new pod is there")
    return pod


def require_asked(view: AppView, planned: PlannedRestart, *, is_there: bool) -> None:
    """Raise CliError where the restart will not come, since it was withdrawn or the pod is to leave."""
    require_obeyed(view, planned.ordinal, new_volume=planned.new_volume and is_there)
    asked = restart_requests(view.streamapp.metadata.annotations)
    if planned.pod["metadata"]["uid"] not in {request.pod_uid for request in asked}:
        raise refusal(view, "the restart was withdrawn", "no action needed")


def state_of(planned: PlannedRestart, pod: Json | None, view: AppView, *, is_next: bool) -> str:
    """How far the restart is, as one line; `is_next`: the pod is the one that came after it."""
    name = planned.pod["metadata"]["name"]
    if pod is None or "deletionTimestamp" in pod["metadata"]:
        return f"{name} stops"
    if is_next:
        return f"{name} is ready" if is_ready(pod) else f"{name} starts"
    reconciling = view.condition("Reconciling")
    reason = "" if reconciling is None or reconciling.reason == "Steady" else f": {reconciling.reason}"
    return f"{name} waits{reason}"


def _size(claim: Json) -> str:
    return str(claim.get("spec", {}).get("resources", {}).get("requests", {}).get("storage", "size unknown"))


def refusal(view: AppView, why: str, next_step: str) -> CliError:
    """The error about a StreamApp."""
    return CliError(f"StreamApp {view.name}", why, next_step)
