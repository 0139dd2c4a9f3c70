"""The task universe: from real texts of `Topology#describe()`, and by inference from real and made-up groups."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.core.evidence.readings import state_beyond
from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.core.facts.tasks import TaskFacts, TaskSet, TopologyUnknown
from streamapp.core.facts.topology import (
    GroupEvidence,
    SubTopology,
    TopicEvidence,
    Topology,
    infer_universe,
    parse_topology,
    universe_of,
)
from streamapp.wire.members import decode_member
from tests.support import example
from tests.wire.captures import captured

_TEXTS = Path(__file__).parent / "topologies"


def text_of(name: str) -> str:
    return (_TEXTS / f"{name}.txt").read_text()


def parsed(name: str) -> Topology:
    topology = parse_topology(text_of(name))
    assert isinstance(topology, Topology)
    return topology


def topics(partitions: Mapping[str, int], changelogs: Mapping[str, int], *others: str) -> TopicEvidence:
    return TopicEvidence("app", partitions, changelogs, others)


def task(name: str, sources: Mapping[str, int], changelogs: Mapping[str, int]) -> TaskFacts:
    return TaskFacts(
        id=TaskId.parse(name),
        stateful=bool(changelogs),
        changelogs=tuple(TopicPartition(*each) for each in changelogs.items()),
        source_partitions=tuple(TopicPartition(*each) for each in sources.items()),
    )


def known(result: TaskSet | TopologyUnknown) -> TaskSet:
    assert isinstance(result, TaskSet)
    return result


def why(result: object) -> str:
    assert isinstance(result, TopologyUnknown)
    return result.reason


# Parsing


def test_sub_topologies_with_their_sources_stores_and_sinks() -> None:
    topology = parsed("repartition")
    assert [(each.number, each.sources, each.stores) for each in topology.subtopologies] == [
        (0, frozenset({"in", "in2"}), frozenset({"counts"})),
        (1, frozenset({"again-repartition"}), frozenset({"tally"})),
        (2, frozenset({"other"}), frozenset()),
    ]
    assert topology.sinks == {"again-repartition", "out"}


def test_a_global_table_has_no_tasks_and_the_others_keep_their_numbers() -> None:
    assert [each.number for each in parsed("global-table").subtopologies] == [1]


def test_a_table_read_straight_from_a_topic_is_recognised() -> None:
    assert parsed("table").subtopologies == (
        SubTopology(
            number=0,
            sources=frozenset({"users"}),
            stores=frozenset({"users-store"}),
            tables={"users-store": "users"},
            near_source={},
        ),
    )


def test_a_sink_that_chooses_its_topic_by_record_is_read_over() -> None:
    assert parsed("fan-out").sinks == {"again-repartition", "five-repartition", "joined"} | {"out"}


@pytest.mark.parametrize("name", sorted(path.stem for path in _TEXTS.glob("*.txt") if path.stem != "pattern"))
def test_line_ends_and_indents_do_not_matter(name: str) -> None:
    text = text_of(name)
    moved = "\r\n".join(f"  {line}  " for line in text.splitlines())
    assert parse_topology(moved) == parse_topology(text) == parsed(name)


def test_a_pattern_of_topics_names_the_way_out() -> None:
    assert why(parse_topology(text_of("pattern"))) == (
        "source KSTREAM-SOURCE-0000000000 of spec.topology reads the pattern in-.*; "
        "write the topics instead of it, as [first, second], or enable the agent"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "spec.topology has no sub-topology"),
        ("Topologies:\n", "spec.topology has no sub-topology"),
        ("Source: a (topics: [b])", "line 1 of spec.topology is not understood: 'Source: a (topics: [b])'"),
        ("Topologies:\n Sub-topology: 0\n  Shop: a", "line 3 of spec.topology is not understood: 'Shop: a'"),
        ("Topologies:\n Sub-topology: x", "line 2 of spec.topology is not understood: 'Sub-topology: x'"),
        ("Topology: eu\n Sub-topology: 0", "line 1 of spec.topology is not understood: 'Topology: eu'"),
        ("Sub-topology: 0\nSub-topology: 0", "spec.topology has sub-topology 0 twice"),
    ],
    ids=["empty", "heading only", "no sub-topology", "unknown node", "no number", "named topology", "twice"],
)
def test_a_text_that_is_none_is_refused_with_its_line(text: str, reason: str) -> None:
    assert why(parse_topology(text)).partition("; ")[0] == reason


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_parses_or_is_refused(text: str) -> None:
    assert isinstance(parse_topology(text), Topology | TopologyUnknown)


@settings(deadline=None)
@given(st.data())
def test_a_real_text_with_lines_missing_parses_or_is_refused(data: st.DataObject) -> None:
    lines = text_of("fan-out").splitlines()
    kept = [line for line in lines if data.draw(st.booleans())]
    assert isinstance(parse_topology("\n".join(kept)), Topology | TopologyUnknown)


# The universe of a text


def test_the_topics_whose_width_is_asked_for_carry_the_application_id_where_they_are_internal() -> None:
    assert parsed("fan-out").source_topics("app") == {
        "in",
        "in2",
        "other",
        "app-again-repartition",
        "app-five-repartition",
    }
    assert parsed("foreign-key-join").source_topics("app") == {
        "orders",
        "users",
        "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic",
        "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic",
    }


def test_every_task_gets_its_sources_and_the_changelog_of_every_logged_store() -> None:
    task_set = universe_of(
        parsed("fan-out"),
        topics(
            {"in": 2, "in2": 1, "other": 2, "app-again-repartition": 2, "app-five-repartition": 1},
            {
                "app-both-other-join-store-changelog": 2,
                "app-both-this-join-store-changelog": 2,
                "app-windowed-changelog": 2,
                "app-KTABLE-SUPPRESS-STATE-STORE-0000000007-changelog": 2,
            },
        ),
    )
    joins = ("app-both-other-join-store-changelog", "app-both-this-join-store-changelog")
    windows = ("app-windowed-changelog", "app-KTABLE-SUPPRESS-STATE-STORE-0000000007-changelog")
    assert task_set == TaskSet(
        (
            task("0_0", {"in": 0, "in2": 0, "other": 0}, dict.fromkeys(joins, 0)),
            task("0_1", {"in": 1, "other": 1}, dict.fromkeys(joins, 1)),
            task("1_0", {"app-again-repartition": 0}, dict.fromkeys(windows, 0)),
            task("1_1", {"app-again-repartition": 1}, dict.fromkeys(windows, 1)),
            task("2_0", {"app-five-repartition": 0}, {}),
        )
    )


def test_a_table_with_a_changelog_of_its_own_uses_it() -> None:
    task_set = universe_of(parsed("table"), topics({"users": 1}, {"app-users-store-changelog": 1}))
    assert task_set == TaskSet((task("0_0", {"users": 0}, {"app-users-store-changelog": 0}),))


def test_an_optimised_table_is_restored_from_its_source_topic() -> None:
    task_set = universe_of(parsed("table"), topics({"users": 1}, {}))
    assert task_set == TaskSet((task("0_0", {"users": 0}, {"users": 0}),))
    assert task_set.tasks[0].source_changelogs == (TopicPartition("users", 0),)


def test_an_optimised_table_beside_an_ordinary_store_has_both() -> None:
    task_set = universe_of(parsed("table-join"), topics({"users": 1, "clicks": 2}, {"app-clicks-count-changelog": 2}))
    assert task_set == TaskSet(
        (
            task("0_0", {"users": 0, "clicks": 0}, {"users": 0, "app-clicks-count-changelog": 0}),
            task("0_1", {"clicks": 1}, {"app-clicks-count-changelog": 1}),
        )
    )


def test_a_store_below_a_source_without_a_changelog_may_be_either_and_holds() -> None:
    assert why(universe_of(parsed("unlogged"), topics({"in": 1}, {}))) == (
        "store scratch has no changelog, and the text does not tell whether it is not logged or restored from "
        "source topic in; if it is not logged, take it out of spec.topology, else enable the agent"
    )


def test_a_store_that_the_user_took_out_because_it_is_not_logged_leaves_a_stateless_task() -> None:
    topology = parse_topology(text_of("unlogged").replace("[scratch]", "[]"))
    assert isinstance(topology, Topology)
    assert universe_of(topology, topics({"in": 1}, {})) == TaskSet((task("0_0", {"in": 0}, {}),))


@pytest.mark.guarantee(2)
def test_a_changelog_that_a_broker_does_not_list_yet_is_missed_by_those_who_have_the_state() -> None:
    # The store is not next to a source: without its changelog it looks like one that is not logged.
    counts = parse_topology(
        text_of("counter")
        .replace("--> count", "--> words")
        .replace("<-- input", "<-- words")
        .replace(
            "    Processor: count",
            "    Processor: words (stores: [])\n      --> count\n      <-- input\n    Processor: count",
        )
    )
    assert isinstance(counts, Topology)
    evidence = topics({"counter-input": 2}, {})
    unlogged = known(universe_of(counts, evidence))
    assert [each.stateful for each in unlogged.tasks] == [False, False]
    members = example.members(1)
    assert state_beyond(unlogged, members, ()).startswith("task 0_0 has state by the word of wordcount-0")
    listed = topics({"counter-input": 2}, {"app-counts-changelog": 2})
    assert not state_beyond(known(universe_of(counts, listed)), members, ())


def test_what_is_not_there_of_one_sub_topology_leaves_the_others_known() -> None:
    text = parse_topology(text_of("counter-stores"))
    assert isinstance(text, Topology)
    first = {"app-counts-changelog": 2, "app-totals-changelog": 2}
    found = universe_of(text, topics({"counter-input": 2}, first))
    assert isinstance(found, TopologyUnknown)
    assert found.reason.startswith("source topic app-turned-repartition of sub-topology 1 is not on the cluster")
    assert found.doubtful == frozenset({1})
    assert found.settled is not None
    assert [str(each.id) for each in found.settled.stateful] == ["0_0", "0_1"]


def test_a_source_topic_that_is_not_there_holds() -> None:
    assert why(universe_of(parsed("table"), topics({}, {}))).startswith(
        "source topic users of sub-topology 0 is not on the cluster"
    )


def test_a_changelog_of_another_width_means_another_version_of_the_text() -> None:
    assert why(universe_of(parsed("table"), topics({"users": 3}, {"app-users-store-changelog": 2}))).startswith(
        "app-users-store-changelog has 2 partitions, sub-topology 0 has 3 tasks"
    )


def test_a_changelog_that_the_text_does_not_know_holds() -> None:
    evidence = topics({"users": 1}, {"app-users-store-changelog": 1, "app-new-store-changelog": 1})
    assert why(universe_of(parsed("table"), evidence)).startswith(
        "app-new-store-changelog looks like a changelog of the application and belongs to no store of spec.topology"
    )


def test_a_changelog_of_an_application_with_a_longer_id_is_not_missed_in_the_text() -> None:
    evidence = topics({"users": 1}, {"app-users-store-changelog": 1, "app-eu-new-store-changelog": 1}, "app-eu", "ap")
    assert universe_of(parsed("table"), evidence) == TaskSet(
        (task("0_0", {"users": 0}, {"app-users-store-changelog": 0}),)
    )


def test_a_store_whose_name_looks_like_another_applications_is_still_ours() -> None:
    topology = parse_topology(text_of("table").replace("users-store", "eu-users"))
    assert isinstance(topology, Topology)
    task_set = universe_of(topology, topics({"users": 1}, {"app-eu-users-changelog": 1}, "app-eu"))
    assert task_set == TaskSet((task("0_0", {"users": 0}, {"app-eu-users-changelog": 0}),))


# The shapes of the demo application, as it describes itself


def test_the_counter_has_one_store_with_a_changelog() -> None:
    task_set = universe_of(parsed("counter"), topics({"counter-input": 2}, {"app-counts-changelog": 2}))
    assert task_set == TaskSet(
        tuple(task(f"0_{each}", {"counter-input": each}, {"app-counts-changelog": each}) for each in (0, 1))
    )


def test_the_shape_with_several_stores_has_stateful_tasks_on_both_sides_of_its_repartition_topic() -> None:
    topology = parsed("counter-stores")
    assert topology.source_topics("app") == {"counter-input", "app-turned-repartition"}
    stores = ("app-counts-changelog", "app-totals-changelog", "app-again-changelog")
    task_set = universe_of(
        topology, topics({"counter-input": 2, "app-turned-repartition": 2}, dict.fromkeys(stores, 2))
    )
    assert task_set == TaskSet(
        (
            *(task(f"0_{each}", {"counter-input": each}, dict.fromkeys(stores[:2], each)) for each in (0, 1)),
            *(task(f"1_{each}", {"app-turned-repartition": each}, {stores[2]: each}) for each in (0, 1)),
        )
    )
    assert [each.source_changelogs for each in task_set.tasks] == [()] * 4


def test_the_shape_with_a_table_is_restored_from_its_topic_and_a_changelog() -> None:
    sources = {"counter-input": 2, "counter-table": 2}
    task_set = universe_of(parsed("counter-table"), topics(sources, {"app-counts-changelog": 2}))
    assert task_set == TaskSet(
        tuple(
            task(
                f"0_{each}",
                dict.fromkeys(sources, each),
                {"counter-table": each, "app-counts-changelog": each},
            )
            for each in (0, 1)
        )
    )
    assert [each.source_changelogs for each in task_set.tasks] == [
        (TopicPartition("counter-table", each),) for each in (0, 1)
    ]


# Inference


def group(stateful: str, **active: Mapping[str, int]) -> GroupEvidence:
    """A group whose active tasks are given as `t0_3={"in": 3}`, and those that show state as "0_0 0_1"."""
    held = {
        TaskId.parse(name.removeprefix("t")): frozenset(TopicPartition(*each) for each in sources.items())
        for name, sources in active.items()
    }
    subscribed = frozenset(topic for sources in held.values() for topic, _ in sources)
    return GroupEvidence(held, frozenset(TaskId.parse(name) for name in stateful.split()), subscribed)


TWO = group("0_0", t0_0={"in": 0}, t0_1={"in": 1}, t1_0={"other": 0})


def test_one_sub_topology_with_state_owns_every_changelog() -> None:
    changelogs = {"app-a-changelog": 2, "app-b-changelog": 2}
    assert infer_universe(TWO, topics({"in": 2, "other": 1}, changelogs)) == TaskSet(
        (
            task("0_0", {"in": 0}, dict.fromkeys(changelogs, 0)),
            task("0_1", {"in": 1}, dict.fromkeys(changelogs, 1)),
            task("1_0", {"other": 0}, {}),
        )
    )


def test_no_state_and_no_changelog_is_a_stateless_application() -> None:
    task_set = infer_universe(replace(TWO, stateful=frozenset()), topics({"in": 2, "other": 1}, {}))
    assert task_set == TaskSet((task("0_0", {"in": 0}, {}), task("0_1", {"in": 1}, {}), task("1_0", {"other": 0}, {})))


DOUBTS: dict[str, tuple[GroupEvidence, TopicEvidence, str]] = {
    "two sub-topologies show state": (
        replace(TWO, stateful=frozenset({TaskId(0, 0), TaskId(1, 0)})),
        topics({"in": 2, "other": 1}, {"app-a-changelog": 2}),
        "sub-topologies 0, 1 show state, and the changelogs do not say to which of them they belong",
    ),
    "a changelog and nobody shows state": (
        replace(TWO, stateful=frozenset()),
        topics({"in": 2, "other": 1}, {"app-a-changelog": 2}),
        "no member shows state, yet app-a-changelog exists",
    ),
    "state and no changelog": (
        TWO,
        topics({"in": 2, "other": 1}, {}),
        "sub-topology 0 shows state, yet there is no changelog: a source topic may serve as one",
    ),
    "a changelog of another width": (
        TWO,
        topics({"in": 2, "other": 1}, {"app-a-changelog": 2, "app-b-changelog": 1}),
        "app-b-changelog has 1 partitions, sub-topology 0 has 2 tasks",
    ),
    "state of a sub-topology that nobody runs": (
        replace(TWO, stateful=frozenset({TaskId(7, 0)})),
        topics({"in": 2, "other": 1}, {"app-a-changelog": 2}),
        "app-a-changelog has 2 partitions, sub-topology 7 has 0 tasks",
    ),
    "a partition that nobody has": (
        TWO,
        topics({"in": 3, "other": 1}, {"app-a-changelog": 2}),
        "partition 2 of in is assigned to 0 tasks",
    ),
    "a partition that two tasks have": (
        group("0_0", t0_0={"in": 0}, t0_1={"in": 0}),
        topics({"in": 1}, {"app-a-changelog": 2}),
        "partition 0 of in is assigned to 2 tasks",
    ),
    "a partition that does not exist": (
        group("0_0", t0_0={"in": 0}, t0_1={"in": 1}),
        topics({"in": 1}, {"app-a-changelog": 2}),
        "partition 1 of in is assigned to 1 tasks",
    ),
    "a subscribed topic that is gone": (
        TWO,
        topics({"in": 2}, {}),
        "topic other is subscribed to and not on the cluster",
    ),
    "a hole in the numbers": (
        group("", t0_0={"in": 0}, t0_2={"in": 1}),
        topics({"in": 2}, {}),
        "task 0_1 is assigned to nobody",
    ),
    "a changelog of an application with a longer id": (
        TWO,
        topics({"in": 2, "other": 1}, {"app-a-changelog": 2, "app-eu-a-changelog": 2}, "app-eu"),
        "app-eu-a-changelog may belong to another application",
    ),
    "an empty group": (group(""), topics({}, {}), "no task is assigned"),
}


@pytest.mark.parametrize(("group_shows", "cluster_shows", "reason"), DOUBTS.values(), ids=DOUBTS.keys())
def test_doubt_is_named(group_shows: GroupEvidence, cluster_shows: TopicEvidence, reason: str) -> None:
    assert why(infer_universe(group_shows, cluster_shows)).partition("; ")[0] == reason


def test_only_what_members_say_at_a_join_may_show_after_one() -> None:
    shown = [
        name
        for name, (group, cluster, _) in DOUBTS.items()
        if isinstance(unknown := infer_universe(group, cluster), TopologyUnknown) and unknown.may_show_after_a_join
    ]
    assert shown == ["a changelog and nobody shows state"]


# Text and group of one application


def evidence_of(name: str) -> GroupEvidence:
    """What a captured group shows."""
    active: dict[TaskId, frozenset[TopicPartition]] = {}
    stateful: set[TaskId] = set()
    subscribed: set[str] = set()
    for raw in captured(name):
        member = decode_member(raw)
        assert member.subscription is not None
        assert member.assignment is not None
        active |= member.assignment.active
        stateful |= member.subscription.info.positions.keys() | member.assignment.standby.keys()
        subscribed |= set(member.subscription.topics)
    return GroupEvidence(active, frozenset(stateful), frozenset(subscribed))


def test_the_text_of_a_real_application_gives_the_tasks_that_its_group_runs() -> None:
    shown = evidence_of("4.2.1-repartition")
    assert parsed("repartition").source_topics("repart") == shown.subscribed
    evidence = TopicEvidence(
        "repart",
        dict.fromkeys(shown.subscribed, 6),
        {"repart-counts-changelog": 6, "repart-tally-changelog": 6},
    )
    task_set = universe_of(parsed("repartition"), evidence)
    assert isinstance(task_set, TaskSet)
    assert {each.id: frozenset(each.source_partitions) for each in task_set.tasks} == shown.active
    assert {each.id.subtopology for each in task_set.stateful} == {each.subtopology for each in shown.stateful}
    assert why(infer_universe(shown, evidence)).startswith("sub-topologies 0, 1 show state")


def test_text_and_inference_agree_where_inference_is_allowed() -> None:
    shown = evidence_of("4.2.1-standbys")
    evidence = TopicEvidence("counter", {"in": 6}, {"counter-counts-changelog": 6})
    text = text_of("pattern").replace("in-.*", "[in]")
    topology = parse_topology(text)
    assert isinstance(topology, Topology)
    assert universe_of(topology, evidence) == infer_universe(shown, evidence)
    assert len(shown.active) == 6


def test_a_source_topic_as_changelog_needs_the_text() -> None:
    shown = evidence_of("4.2.1-table")
    evidence = TopicEvidence("tab", {"in": 6}, {})
    assert why(infer_universe(shown, evidence)).startswith("sub-topology 0 shows state, yet there is no changelog")
    topology = parse_topology(text_of("table").replace("[users]", "[in]"))
    assert isinstance(topology, Topology)
    task_set = universe_of(topology, evidence)
    assert isinstance(task_set, TaskSet)
    assert {each.id for each in task_set.stateful} == shown.stateful
