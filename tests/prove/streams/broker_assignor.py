"""Where the coordinator puts tasks: the sticky assignor as compared with Kafka's classes, with an order of its own.

Which of several equals comes first depends on Java's hash tables. A world has one such order, drawn with its seed, and
an operator cannot know it: names are changed before they are hashed.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from streamapp.core.assignors.group import Task
from streamapp.core.assignors.sticky import BrokerRelease, StickySettings, StreamsMember, assign
from streamapp.core.facts.ids import TaskId
from tests.prove.group import Member
from tests.prove.streams.truth import Share

RELEASE = "4.2"
"""What the operator is shown; the patch release it is not."""


def deal_by_broker(
    tasks: Sequence[TaskId], members: Iterable[Member], before: Mapping[str, Share], standbys: int, order: str
) -> dict[str, Share]:
    """Compute the targets of a new epoch.

    Args:
        tasks: All of the group's; all have state.
        members: All that are listed, dead or alive.
        before: The targets so far, by member.
        standbys: Of each task.
        order: Decides all ties, and which patch release the broker is of.
    """
    named = {_renamed(order, member.id): member for member in members}
    known = [
        StreamsMember(
            id=name,
            process=_renamed(order, str(member.process_id)),
            actives=before.get(member.id, Share()).active,
            standbys=before.get(member.id, Share()).standby,
        )
        for name, member in sorted(named.items())
    ]
    release = BrokerRelease.FROM_4_2 if int(_renamed(order, "release"), 16) % 2 else BrokerRelease.FROM_4_2_2
    placed = assign(map(Task, tasks), known, StickySettings(release=release, num_standby_replicas=standbys))
    return {named[name].id: Share(frozenset(one.actives), frozenset(one.standbys)) for name, one in placed.items()}


def _renamed(order: str, name: str) -> str:
    return sha256(f"{order} {name}".encode()).hexdigest()[:22]
