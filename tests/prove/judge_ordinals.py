"""What the judge asks of ordinals: a removal takes the pods that were judged, and no others.

Kubernetes counts from `ordinals.start`. Where somebody moved that, fewer replicas cost other pods than those at the top
of a count from 0.
"""

from typing import Any

from tests.prove.judge import Judge
from tests.prove.nodes_truth import ordinals_of

Json = dict[str, Any]


def watch_ordinals(judge: Judge) -> None:
    """Have a judge ask of each removal which pods it really takes."""

    def changed(plural: str, body: Json, before: Json | None) -> None:
        writer = judge._board.writer
        is_own = writer is not None and before is not None and judge._nodes.is_own(plural, body or before)
        if not is_own or plural != "statefulsets" or not body:
            return
        assert before is not None
        assert writer is not None
        was, now, kept = before["spec"]["replicas"], body["spec"]["replicas"], ordinals_of(body)
        if now >= was or not kept.start:
            return
        there = {int(pod["metadata"]["name"].rpartition("-")[2]) for pod in judge._nodes.pods()}
        taken = sorted(there.difference(kept))
        if taken != [*range(now, was)]:
            judge.wrong(1, f"process {writer.number} takes {was} to {now}, and Kubernetes takes {taken}")

    judge._store.changed.append(changed)
