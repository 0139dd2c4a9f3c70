"""Whose turn it is to be evicted: several pods can be on nodes that must be drained, and one is drained at a time.

Nobody tells the operator which node is emptied next: somebody may cordon all nodes first, and then drain them in an
order of his own. So a pod that may be evicted, and is not, gives its turn to the next one. Its next turn is twice as
long, so that nodes which are cordoned for days cost few moves of tasks. Once a pod has left, all turns are short again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from streamapp.core.actions.decision import Disruptions
from streamapp.core.facts.snapshot import EvictionTurn, Snapshot
from streamapp.core.facts.workload import Pod

FIRST = timedelta(seconds=30)
"""Longer than the pause of `kubectl drain` between two tries, which is 5 s, and the longest back-off of Karpenter."""
LONGEST = timedelta(minutes=15)
"""A drain can begin in the turn of another pod, and waits for its end."""
_NOT_YET = EvictionTurn()


def in_turn(turns: Mapping[str, EvictionTurn], due: Sequence[Pod]) -> tuple[Pod, ...]:
    """Sort the pods: whoever gave up the fewest turns comes first, then the highest ordinal."""
    return tuple(sorted(due, key=lambda pod: (turns.get(pod.uid, _NOT_YET).passed, -pod.ordinal)))


def eviction_turns_after(snapshot: Snapshot, disruptions: Disruptions) -> Mapping[str, EvictionTurn]:
    """Give the turns as they are after a decision; pods that are no longer on nodes that must be drained are forgotten.

    Args:
        snapshot: The facts of the decision.
        disruptions: What it allows.
    """
    due = [pod for pod in snapshot.workload.pods if is_due(pod)]
    before = snapshot.eviction_turns
    has_left = not before.keys() <= {pod.uid for pod in due}
    kept = {pod.uid: _NOT_YET if has_left else before.get(pod.uid, _NOT_YET) for pod in due}
    evictable = disruptions.evictable
    kept = {uid: turn if _is(evictable, uid) else replace(turn, allowed_since=None) for uid, turn in kept.items()}
    if evictable is None or evictable.uid not in kept:
        return kept
    turn = kept[evictable.uid]
    if turn.allowed_since is None:
        kept[evictable.uid] = replace(turn, allowed_since=snapshot.now)
    elif len(kept) > 1 and snapshot.now - turn.allowed_since >= _length(turn):
        kept[evictable.uid] = EvictionTurn(passed=turn.passed + 1)
    return kept


def _is(evictable: Pod | None, uid: str) -> bool:
    return evictable is not None and evictable.uid == uid


def is_due(pod: Pod) -> bool:
    """Tell whether a pod is on a node that must be drained."""
    return pod.drain is not None and not pod.terminating


def _length(turn: EvictionTurn) -> timedelta:
    return min(LONGEST, FIRST * (1 << min(turn.passed, 10)))
