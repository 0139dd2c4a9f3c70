"""Whether a StatefulSet may be made: its pods must not join the group beside those of another StreamApp.

Asked by `decide` where there is none. While all StreamApps are known, `App.served_instead` has answered already. Of a
namespace that cannot be listed the API server can say why: then waiting brings nothing, and the group says whether
pods of others are in it. Silence says nothing; it is waited out.
"""

from datetime import timedelta

from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.evidence.readings import KEPT_FOR
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.group import GroupUnreadable, Member
from streamapp.core.reasons import Reason

WATCHED_FOR = timedelta(seconds=45)
"""Without others for so long: as long as a member is listed by the default session timeout. A new coordinator can show
the group empty for a moment, or as it was before somebody joined."""


def refusal(evidence: Evidence) -> Refusal | None:
    """Why no StatefulSet may be made yet; None where nobody else's pods can be in the group."""
    unlisted = evidence.snapshot.app.unlisted
    if not unlisted.names:
        return None
    names = ", ".join(unlisted.names)
    if unlisted.silent:
        return Refusal(Reason.NamespaceUnlisted, names)
    against = _against(evidence) or _not_seen(evidence)
    return Refusal(Reason.NamespaceUnlisted, f"{names}; {against}") if against else None


def awaits_look(evidence: Evidence) -> bool:
    """Whether only newer readings of the group are missing."""
    return not evidence.snapshot.app.unlisted.silent and not _against(evidence)


def _against(evidence: Evidence) -> str:
    """What the readings of the last minute have against it, the newest one first; news of the group begin a pass."""
    now = evidence.snapshot.now
    for reading in evidence.snapshot.readings:
        if now - reading.ended_at > KEPT_FOR:
            return ""
        if isinstance(reading.group, GroupUnreadable):
            return f"the group is unknown: {reading.group.reason.name}: {reading.group.detail}".removesuffix(": ")
        found = evidence.of(reading)
        stranger = None if found is None else _stranger(found.placement)
        if stranger is not None:
            return f"member {stranger.id} at {stranger.client_host} is in none of its pods"
    return ""


def _stranger(placement: MemberPlacement) -> Member | None:
    """A member that is not surely in one of our pods; a probe member, too, which is made for a group with members."""
    contested = tuple(clash.member for clash in placement.contradictions)
    return next(iter((*placement.foreign, *contested, *placement.probe_members)), None)


def _not_seen(evidence: Evidence) -> str:
    """Whether the group was not read just now, or is not watched for long enough; empty if it was."""
    readings, now = evidence.snapshot.readings, evidence.snapshot.now
    if not readings or not timedelta(0) <= now - readings[0].ended_at <= evidence.policy.timing.fact_age:
        return "the group was not read just now"
    watched = readings[0].ended_at - readings[-1].ended_at
    if watched >= WATCHED_FOR:
        return ""
    return (
        f"the group is watched for {WATCHED_FOR.total_seconds():.0f} s first, since a new coordinator can show it empty"
    )
