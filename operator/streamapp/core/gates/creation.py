"""Whether a StatefulSet may be made: its pods must not join the group beside those of another StreamApp.

Asked by `decide` where there is none. While all StreamApps are known, `App.served_instead` has answered already. Of a
namespace that cannot be listed the API server can say why: then waiting brings nothing, and the group says whether
pods of others are in it. Silence says nothing; it is waited out.
"""

from datetime import timedelta

from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.group import GroupUnreadable, Member
from streamapp.core.reasons import Reason


def refusal(evidence: Evidence) -> Refusal | None:
    """Why no StatefulSet may be made yet; None where nobody else's pods can be in the group."""
    unlisted = evidence.snapshot.app.unlisted
    if not unlisted.names:
        return None
    names = ", ".join(unlisted.names)
    if unlisted.silent:
        return Refusal(Reason.NamespaceUnlisted, names)
    against = _against(evidence) or ("the group was not read just now" if not _is_fresh(evidence) else "")
    return Refusal(Reason.NamespaceUnlisted, f"{names}; {against}") if against else None


def awaits_look(evidence: Evidence) -> bool:
    """Whether only a newer reading of the group is missing."""
    return not evidence.snapshot.app.unlisted.silent and not _against(evidence)


def _against(evidence: Evidence) -> str:
    """What the newest reading has against it, however old it is: news of the group begin a pass by themselves."""
    reading, found = evidence.snapshot.latest, evidence.latest
    if reading is not None and isinstance(reading.group, GroupUnreadable):
        return f"the group is unknown: {reading.group.reason.name}: {reading.group.detail}".removesuffix(": ")
    stranger = None if found is None else _stranger(found.placement)
    return "" if stranger is None else f"member {stranger.id} at {stranger.client_host} is in none of its pods"


def _stranger(placement: MemberPlacement) -> Member | None:
    """A member that is not surely in one of our pods; a probe member, too, which is made for a group with members."""
    contested = tuple(clash.member for clash in placement.contradictions)
    return next(iter((*placement.foreign, *contested, *placement.probe_members)), None)


def _is_fresh(evidence: Evidence) -> bool:
    reading = evidence.snapshot.latest
    if reading is None:
        return False
    return timedelta(0) <= evidence.snapshot.now - reading.ended_at <= evidence.policy.timing.fact_age
