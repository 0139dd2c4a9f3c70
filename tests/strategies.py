"""Hypothesis strategies for the core's values.

`snapshots()` draws small applications in all kinds of trouble, most of them near the border where a removal is just
allowed: far from it every law holds for dull reasons.
"""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from streamapp.core.containers import Capture, MemberKey
from streamapp.core.holds import Epoch, Forced, ForcedBy, Hold, HoldRecord, OpenStep, Progress
from streamapp.core.identity import Ordinal
from streamapp.core.reasons import Reason

TIMES = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=365)).map(
    lambda since: datetime(2026, 1, 1, tzinfo=UTC) + since
)
COUNTS = st.integers(min_value=0, max_value=100)
NAMES = st.text(min_size=1, max_size=20)
REASONS = st.sampled_from(Reason)
FORCED = st.none() | st.builds(Forced, by=st.sampled_from(ForcedBy), why=st.text(max_size=40))


def captures() -> st.SearchStrategy[Capture]:
    keys = st.builds(MemberKey, id=NAMES, instance_id=st.none() | NAMES)
    return st.builds(
        Capture,
        ordinal=COUNTS.map(Ordinal),
        pod_uid=NAMES,
        container_id=NAMES,
        seen_at=TIMES,
        members=st.lists(keys, min_size=1, max_size=3, unique_by=lambda key: key.id).map(tuple),
    )


def hold_records() -> st.SearchStrategy[HoldRecord]:
    progress = st.builds(
        Progress,
        best=st.none() | COUNTS,
        improved_at=TIMES,
        waited=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=9)),
        counted_at=st.none() | TIMES,
    )
    hold = st.builds(
        Hold,
        id=NAMES,
        from_replicas=COUNTS,
        target=COUNTS,
        granted=COUNTS,
        since=TIMES,
        reason=REASONS,
        progress=progress,
        forced=FORCED,
        gave_up_at=st.none() | COUNTS,
    )
    step = st.builds(
        OpenStep,
        hold_id=NAMES,
        from_replicas=COUNTS,
        to_replicas=COUNTS,
        granted_at=TIMES,
        reason=REASONS,
        forced=FORCED,
        captures=st.lists(captures(), max_size=3).map(tuple),
    )
    epoch = st.builds(Epoch, lease=COUNTS, counter=COUNTS)
    return st.builds(HoldRecord, epoch=epoch, hold=st.none() | hold, step=st.none() | step)
