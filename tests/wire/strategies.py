"""Hypothesis strategies for what members say and are told."""

from collections.abc import Mapping

from hypothesis import strategies as st

from streamapp.core.facts.ids import ProcessId, TaskId, TopicPartition
from streamapp.wire.assignment import DecodedAssignment, Host, NoRebalanceScheduled, RebalanceScheduled
from streamapp.wire.subscription import (
    DecodedSubscription,
    PositionSum,
    RunningActivePosition,
    SubscriptionInfo,
    UnknownPosition,
)

INT32 = 2**31 - 1

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
partitions = st.builds(TopicPartition, names, st.integers(0, INT32))
tasks = st.builds(TaskId, st.integers(0, INT32), st.integers(0, INT32))
positions = st.one_of(
    st.builds(RunningActivePosition), st.builds(UnknownPosition), st.builds(PositionSum, st.integers(0, 2**63 - 2))
)
process_ids = st.builds(ProcessId, st.uuids())


@st.composite
def subscription_infos(draw: st.DrawFn) -> SubscriptionInfo:
    version = draw(st.integers(7, 11))
    return SubscriptionInfo(
        version=version,
        latest_supported_version=draw(st.integers(version, 20)),
        process_id=draw(process_ids),
        user_endpoint=draw(texts),
        positions=draw(st.dictionaries(tasks, positions, max_size=6)),
        unique_field=draw(st.integers(-128, 127)) if version >= 8 else None,
        error_code=draw(st.integers(0, 10)) if version >= 9 else 0,
        client_tags=draw(st.lists(st.tuples(texts, texts), max_size=3).map(tuple)) if version >= 11 else (),
    )


@st.composite
def subscriptions(draw: st.DrawFn) -> DecodedSubscription:
    version = draw(st.integers(0, 3))
    return DecodedSubscription(
        version=version,
        topics=draw(st.lists(names, max_size=4).map(tuple)),
        info=draw(subscription_infos()),
        owned_partitions=draw(st.frozensets(partitions, max_size=6)) if version >= 1 else frozenset(),
        generation=draw(st.one_of(st.none(), st.integers(0, INT32))) if version >= 2 else None,
        rack=draw(st.one_of(st.none(), texts)) if version >= 3 else None,
    )


@st.composite
def owned(draw: st.DrawFn) -> Mapping[TaskId, frozenset[TopicPartition]]:
    """Tasks with at least one source partition each, no partition with two tasks."""
    found = draw(st.dictionaries(partitions, tasks, max_size=8))
    return {task: frozenset(each for each in found if found[each] == task) for task in set(found.values())}


hosts = st.dictionaries(
    st.builds(Host, names, st.integers(0, 65535)), st.frozensets(partitions, max_size=4), max_size=3
)


@st.composite
def assignments(draw: st.DrawFn) -> DecodedAssignment:
    version = draw(st.integers(7, 11))
    return DecodedAssignment(
        version=version,
        commonly_supported_version=draw(st.integers(version, 20)),
        active=draw(owned()),
        standby=draw(st.dictionaries(tasks, st.frozensets(partitions, max_size=4), max_size=5)),
        active_by_host=draw(hosts),
        standby_by_host=draw(hosts),
        error_code=draw(st.integers(0, 10)),
        next_rebalance=draw(
            st.one_of(st.builds(NoRebalanceScheduled), st.builds(RebalanceScheduled, st.integers(0, 2**63 - 2)))
        ),
    )
