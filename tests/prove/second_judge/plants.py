"""Planted faults: what an operator without one of its safeguards would send, added or changed at the API's door.

Each plant breaks one guarantee, so each shows that a check can fail. The operator itself stays as it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import PROCESS_ID
from streamapp.core.facts.containers import MemberKey
from tests.kube.object_store import Request, clone, merged
from tests.prove.kubelet import NAME, NAMESPACE
from tests.prove.second_judge import scripts
from tests.prove.second_judge.scripts import Script
from tests.prove.second_judge.stage import Plant, Stage

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Planted:
    """One fault, and the guarantee that it breaks."""

    name: str
    guarantee: int
    script: Script
    plants: Sequence[Plant]
    says: str
    """A part of what the judge must say."""


def _extra(plural: str, make: Callable[[Stage], Request | None]) -> Plant:
    """Sends another request beside each write to a kind, as the same process."""
    is_busy = False

    def plant(stage: Stage, request: Request) -> Request:
        nonlocal is_busy
        if not is_busy and request.plural == plural and stage.board.writer is not None:
            is_busy, writer = True, stage.board.writer
            sent = make(stage)
            if sent is not None:
                stage.store.answer(sent)
            is_busy, stage.board.writer = False, writer
        return request

    return plant


def _patch(plural: str, name: str, body: Json, method: str = "PATCH", subresource: str = "") -> Request:
    query = {"fieldManager": "planted", "force": "true"}
    return Request(method, plural, NAMESPACE, name, subresource, query, body, is_merge=True)


def _changed(plural: str, change: Callable[[Stage, Json], Json | None], subresource: str = "") -> Plant:
    """Changes what is sent to a kind; None: it stays."""

    def plant(stage: Stage, request: Request) -> Request:
        if (request.plural, request.subresource) != (plural, subresource):
            return request
        body = change(stage, clone(request.body))
        if body is None:
            return request
        return Request(
            request.method, plural, request.namespace, request.name, subresource, request.query, body, request.is_merge
        )

    return plant


def _laid(body: Json, patch: Json) -> Json:
    laid: Json = merged(body, patch)
    return laid


def _lower(stage: Stage) -> Request | None:
    """Lower the current replicas to the desired ones, as soon as they are lower."""
    if stage.desired() >= stage.current():
        return None
    return _patch("statefulsets", NAME, {"spec": {"replicas": stage.desired()}})


def _lower_in_the_dark(stage: Stage) -> Request | None:
    return _lower(stage) if stage.group.is_away else None


def _lower_late(stage: Stage) -> Request | None:
    """A removal of a frozen process arrives after its successor's record, and nothing refuses it."""
    former, present = stage.lives.former, stage.lives.present
    if former is None or present is None or stage.ledger.writes[-1].process != present.number:
        return None
    stage.board.writer = former
    return _patch("statefulsets", NAME, {"spec": {"replicas": stage.current() - 1}})


def _delete_claim(stage: Stage) -> Request | None:
    claim = ("persistentvolumeclaims", NAMESPACE, f"state-{NAME}-3")
    return _patch(claim[0], claim[2], {}, "DELETE") if stage.store.get(*claim) and stage.current() < 4 else None


def _never_raised(stage: Stage, body: Json) -> Json | None:
    replicas = body.get("spec", {}).get("replicas", 0)
    return _laid(body, {"spec": {"replicas": stage.current()}}) if replicas > stage.current() else None


def _keeps_the_hold(stage: Stage, body: Json) -> Json | None:
    """The status goes on to show the hold that it showed before."""
    before = stage.app().get("status", {})
    held = next((one for one in before.get("conditions", ()) if one["type"] == "ScaleDownHeld"), None)
    if held is None or held["status"] != "True":
        return None
    stays = {"observedGeneration": body["status"]["observedGeneration"]}
    conditions = [{**held, **stays} if one["type"] == "ScaleDownHeld" else one for one in body["status"]["conditions"]]
    return _laid(body, {"status": {"conditions": conditions, "scaleDown": before.get("scaleDown")}})


def _another_process_id(stage: Stage) -> Request:  # noqa: ARG001 (as all of them)
    wrong = {PROCESS_ID: "99999999-0000-4000-8000-000000000000"}
    return _patch("persistentvolumeclaims", f"state-{NAME}-0", {"metadata": {"annotations": wrong}})


def _silent_about_identity(stage: Stage, body: Json) -> Json | None:  # noqa: ARG001 (as all of them)
    conditions = [
        {**one, "status": "True"} if one["type"] == "ProcessIdentityStable" else one
        for one in body["status"].get("conditions", ())
    ]
    return _laid(body, {"status": {"conditions": conditions}})


def _writes_desired(stage: Stage) -> Request:
    return _patch("streamapps", NAME, {"spec": {"replicas": stage.desired()}})


def _without(*fields: str) -> Plant:
    """Leaves fields out of `status.scaleDown`."""

    def change(stage: Stage, body: Json) -> Json | None:  # noqa: ARG001 (as all of them)
        shown = body["status"].get("scaleDown")
        if shown is None:
            return None
        return _laid(body, {"status": {"scaleDown": {**shown, **dict.fromkeys(fields)}}})

    return _changed("streamapps", change, "status")


def _wrong_start(stage: Stage, body: Json) -> Json | None:  # noqa: ARG001 (as all of them)
    shown = body["status"].get("scaleDown")
    if shown is None or "since" not in shown:
        return None
    return _laid(body, {"status": {"scaleDown": {"since": "2026-11-21T11:00:00Z"}}})


def _wrong_number(stage: Stage, body: Json) -> Json:
    return _laid(body, {"status": {"statefulSetReplicas": stage.current() + 1}})


def _without_estimates(stage: Stage, body: Json) -> Json:  # noqa: ARG001 (as all of them)
    gone = {"estimatedCompletionTime": None, "lagFalling": None}
    shown = body["status"]
    parts = {part: gone for part in ("scaleDown", "convergence") if part in shown}
    return _laid(body, {"status": parts})


def _unforced(stage: Stage, body: Json) -> Json:  # noqa: ARG001 (as all of them)
    steps = [
        {key: value for key, value in one.items() if key != "forced"} for one in body["status"].get("lastSteps", ())
    ]
    return _laid(body, {"status": {"lastSteps": steps}})


def _unspoken(stage: Stage, body: Json) -> Json:  # noqa: ARG001 (as all of them)
    return _laid(body, {"reason": "SomethingHappened"})


def _evicts_a_live_member(stage: Stage) -> Request | None:
    """No request of the API, but of the brokers: the first live member leaves."""
    member = next(iter(stage.group.listed(alive=True)), None)
    if member is not None and stage.board.writer is not None:
        stage.ledger.evicts(stage.board.writer, stage.group, [MemberKey(member.id)])
        stage.group.leave(member.id)
    return None


def _deletes_kept_claims(stage: Stage, body: Json) -> Json | None:  # noqa: ARG001 (as all of them)
    if "template" not in body.get("spec", {}):
        return None
    return _laid(body, {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}})


def _keeps_age(stage: Stage, body: Json) -> Json | None:  # noqa: ARG001 (as all of them)
    inits = body.get("spec", {}).get("template", {}).get("spec", {}).get("initContainers")
    if inits is None:
        return None
    args = [[arg for arg in one.get("args", ()) if not arg.startswith("--max-age")] for one in inits]
    changed = [{**one, "args": left} for one, left in zip(inits, args, strict=True)]
    return _laid(body, {"spec": {"template": {"spec": {"initContainers": changed}}}})


def _leaves_the_budget_closed(stage: Stage, body: Json) -> Json:  # noqa: ARG001 (as all of them)
    return _laid(body, {"spec": {"maxUnavailable": 0}})


TEMPLATE = Script("another template", "four pods", (("wait", 0, 5), ("template", 2, 3)), ending=0)
AFTER_A_DAY = Script(
    "a scale-down long ago", "two standbys", (("wait", 0, 5), ("die", 0, 30), ("wait", 0, 60)), ending=20
)
PLANTED: tuple[Planted, ...] = (
    Planted(
        "removes at once",
        1,
        scripts.SOON,
        (_extra("streamapps", _lower),),
        "no remaining pod had",
    ),
    Planted("removes in the dark", 2, scripts.DARK, (_extra("streamapps", _lower_in_the_dark),), "had not answered"),
    Planted(
        "removes what the user holds",
        2,
        scripts.HELD,
        (_extra("streamapps", _lower),),
        "the user held it",
    ),
    Planted(
        "removes as a former process", 2, scripts.FROZEN, (_extra("streamapps", _lower_late),), "had already written"
    ),
    Planted(
        "leaves the budget closed",
        2,
        AFTER_A_DAY,
        (_changed("poddisruptionbudgets", _leaves_the_budget_closed),),
        "closed since",
    ),
    Planted("never raises", 3, scripts.UP, (_changed("statefulsets", _never_raised),), "is not made"),
    Planted(
        "keeps a cancelled hold", 3, scripts.DOWN_UP, (_changed("streamapps", _keeps_the_hold, "status"),), "goes on"
    ),
    Planted("deletes a volume claim", 4, scripts.DOWN, (_extra("streamapps", _delete_claim),), "DELETE of the volume"),
    Planted("lets claims be deleted", 4, TEMPLATE, (_changed("statefulsets", _deletes_kept_claims),), "retains"),
    Planted("keeps old state", 4, TEMPLATE, (_changed("statefulsets", _keeps_age),), "--max-age"),
    Planted("records another process ID", 5, scripts.UP, (_extra("streamapps", _another_process_id),), "changed from"),
    Planted(
        "hides a mismatch",
        5,
        scripts.MISMATCH,
        (_changed("streamapps", _silent_about_identity, "status"),),
        "is not reported",
    ),
    Planted("removes in spite of a mismatch", 5, scripts.MISMATCH, (_extra("streamapps", _lower),), "runs as"),
    Planted("writes spec.replicas", 6, scripts.UP, (_extra("streamapps", _writes_desired),), "of streamapps"),
    Planted("evicts a live member", 7, scripts.DOWN, (_extra("streamapps", _evicts_a_live_member),), "whose container"),
    Planted("drops the reason", 8, scripts.HELD, (_without("reason"),), "not explained"),
    Planted("drops the hold", 8, scripts.HELD, (_without("reason", "target", "since"),), "not explained"),
    Planted(
        "shows another start", 8, scripts.BEHIND, (_changed("streamapps", _wrong_start, "status"),), "hold's start"
    ),
    Planted("shows another number", 8, scripts.HELD, (_changed("streamapps", _wrong_number, "status"),), "statefulSet"),
    Planted(
        "drops the estimates", 8, scripts.BEHIND, (_changed("streamapps", _without_estimates, "status"),), "no estimate"
    ),
    Planted(
        "keeps an override secret",
        1,
        scripts.FORCED,
        (_changed("streamapps", _unforced, "status"), _changed("events", _unspoken)),
        "no record",
    ),
)
