"""The meter finds on a real broker exactly what was planted there.

Needs `KAFKA_BOOTSTRAP` in the environment. Makes topics of its own and deletes them. What is expected comes from the
broker's own delivery reports, which name the offset and the append time of every record.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from confluent_kafka import TopicPartition

# Public by the library's documentation; its package does not re-export them in a way mypy accepts.
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from lab.errors import LabError
from lab.meter.counts import CountReport, CountVerdict, KeyCount, Record
from lab.meter.gaps import Gap, Window, find_gaps
from lab.meter.measure import check_counts, measure_gaps, wait_until_caught_up
from lab.meter.topics import Broker, Isolation, Span, read
from tests.lab.planting import PARTITIONS, Application, Plant, key_of, wait_for_leaders, write_counted

pytestmark = pytest.mark.lab

APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
TopicMaker = Callable[[dict[str, str]], str]


@pytest.fixture(scope="module")
def bootstrap() -> str:
    address = os.environ.get("KAFKA_BOOTSTRAP")
    assert address, "KAFKA_BOOTSTRAP is not set: run inside the lab, or name a broker that may be written to"
    return address


@pytest.fixture
def new_topic(bootstrap: str) -> Iterator[TopicMaker]:
    """Give a function that makes a topic with these settings; all are deleted at the end."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made: list[str] = []

    def make(settings: dict[str, str]) -> str:
        name = f"meter-test-{uuid.uuid4().hex[:12]}"
        admin.create_topics([NewTopic(name, PARTITIONS, 1, config=settings)])[name].result(timeout=20)
        made.append(name)
        wait_for_leaders(bootstrap, name)
        return name

    yield make
    for deleted in admin.delete_topics(made).values():
        deleted.result(timeout=20)


def last_seconds(seconds: float) -> Window:
    """Give a window that is over and holds all that was written in the last seconds."""
    time.sleep(0.05)
    now = round(time.time() * 1000) - 1
    return Window(now - round(seconds * 1000), now)


@pytest.fixture
def plant(bootstrap: str, new_topic: TopicMaker) -> Plant:
    return Plant(bootstrap, new_topic(APPEND_TIME), new_topic(APPEND_TIME))


def test_a_planted_pause_is_found_where_it_was_and_a_pause_of_the_input_is_not_charged(plant: Plant) -> None:
    application = Application(plant)
    held = application.run(7.0, hold=(1, 2.0, 5.0), no_input=(2, 2.0, 5.0))
    assert application.first_held
    window = Window(min(each.time_ms for each in plant.inputs), max(each.time_ms for each in plant.outputs) + 1)
    time.sleep(max(window.end_ms / 1000 - time.time(), 0) + 0.01)
    steps: list[tuple[str, int, int]] = []
    found = measure_gaps(
        plant.bootstrap, plant.input_topic, plant.output_topic, window, progress=lambda *step: steps.append(step)
    )

    assert found == find_gaps(plant.appends(plant.inputs), plant.appends(plant.outputs), window)
    quick, paused, without_input = found.partitions
    resumed = [each.time_ms for each in plant.outputs if each.partition == 1]
    silences = [(later - earlier, earlier, later) for earlier, later in pairwise(resumed)]
    _, last_before, first_after = max(silences)
    begun = max(last_before, application.first_held.time_ms)
    assert paused.gap == Gap(begun, first_after, before_ms=0, open=False)
    assert (paused.seconds or 0) + paused.idle_ms / 1000 >= held >= 2.9
    assert max(quick.seconds or 9, without_input.seconds or 9) < held
    # An answer that came late on a busy machine belongs to the gap, and the idle time is shorter by it.
    assert without_input.idle_ms > 1_500
    assert without_input.idle_ms / 1000 + (without_input.seconds or 0) >= 2.9
    for topic, written in ((plant.input_topic, plant.inputs), (plant.output_topic, plant.outputs)):
        assert [step for step in steps if step[0] == topic][-1] == (topic, len(written), len(written))


def test_only_the_window_and_its_lead_in_are_read(plant: Plant) -> None:
    for _ in range(3):
        plant.put_input(0)
        plant.flush()
        plant.put_output(0, plant.inputs[-1].offset)
        plant.flush()
        time.sleep(0.3)
    middle = plant.inputs[1].time_ms
    steps: list[tuple[str, int, int]] = []
    found = measure_gaps(
        plant.bootstrap,
        plant.input_topic,
        plant.output_topic,
        Window(middle, middle + 200),
        lead_in_s=0.1,
        progress=lambda *step: steps.append(step),
    )

    assert [(row.inputs, row.outputs, row.gap is None) for row in found.partitions] == [
        (1, 1, False),
        (0, 0, True),
        (0, 0, True),
    ]
    assert sorted({total for _, _, total in steps}) == [1]


RIGHT = CountReport(
    exactly_once=True,
    inputs=300,
    outputs=300,
    keys=30,
    lost=0,
    doubled=0,
    undercounted=0,
    overcounted=0,
    foreign=0,
    later=0,
    lost_examples=(),
    doubled_examples=(),
    undercounted_examples=(),
    overcounted_examples=(),
    foreign_examples=(),
)


def test_planted_losses_and_doubles_are_found_exactly(plant: Plant) -> None:
    def check(*, exactly_once: bool) -> CountReport:
        return check_counts(plant.bootstrap, plant.input_topic, plant.output_topic, exactly_once=exactly_once)

    write_counted(plant, 100, 10)
    assert check(exactly_once=True) == RIGHT

    plant.put_output(1, 97, 11, key_of(1, 7))
    plant.put_output(0, 100, 11, key_of(0, 0))
    plant.flush()
    doubled = replace(
        RIGHT,
        outputs=301,
        later=1,
        doubled=1,
        overcounted=1,
        doubled_examples=(Record(1, 97, "key-1-07", 2),),
        overcounted_examples=(KeyCount(1, "key-1-07", 10, 11),),
    )
    strict, lenient = check(exactly_once=True), check(exactly_once=False)
    assert [strict, lenient] == [doubled, replace(doubled, exactly_once=False)]
    assert [strict.verdict, lenient.verdict] == [CountVerdict.DOUBLED, CountVerdict.KEPT]

    for key in (b"key-2-00", b"key-2-01"):
        plant.put_input(2, key)
        plant.flush()
    plant.put_output(2, plant.inputs[-1].offset, 11, b"key-2-01")
    plant.flush()
    lost = check(exactly_once=False)
    assert lost == replace(
        doubled,
        exactly_once=False,
        inputs=302,
        outputs=302,
        lost=1,
        undercounted=1,
        lost_examples=(Record(2, 100, "key-2-00", 0),),
        undercounted_examples=(KeyCount(2, "key-2-00", 11, 10),),
    )
    assert lost.verdict is CountVerdict.LOST


def test_markers_and_aborted_outputs_of_transactions_are_neither_inputs_nor_doubles(
    bootstrap: str, new_topic: TopicMaker
) -> None:
    plant = Plant(bootstrap, new_topic(APPEND_TIME), new_topic(APPEND_TIME), transactional=True)
    for number in range(4):
        plant.producer.begin_transaction()
        for partition in range(PARTITIONS):
            plant.put_input(partition, key_of(partition, 0))
        plant.producer.commit_transaction(30)
        new = [record for record in plant.inputs if record.offset == 2 * number]
        for commits in (False, True):
            plant.producer.begin_transaction()
            for record in new:
                plant.put_output(record.partition, record.offset, number + 1, key_of(record.partition, 0))
            plant.flush()
            if commits:
                plant.producer.commit_transaction(30)
            else:
                plant.producer.abort_transaction(30)
    topics = (bootstrap, plant.input_topic, plant.output_topic)
    committed, everything = check_counts(*topics, exactly_once=True), check_counts(*topics, exactly_once=False)

    assert [record.offset for record in plant.inputs_of(0)] == [0, 2, 4, 6]
    assert committed == replace(RIGHT, inputs=12, outputs=12, keys=3)
    assert (everything.outputs, everything.doubled, everything.verdict) == (24, 12, CountVerdict.KEPT)
    assert wait_until_caught_up(*topics, exactly_once=True) == {0: 6, 1: 6, 2: 6}

    window = last_seconds(30)
    counted = [
        [row.outputs for row in measure_gaps(*topics, window, isolation=isolation).partitions]
        for isolation in (Isolation.COMMITTED, Isolation.UNCOMMITTED)
    ]
    assert counted == [[4, 4, 4], [8, 8, 8]]


def test_an_open_transaction_hides_the_end_and_a_reading_waits_for_it_with_a_limit(
    bootstrap: str, new_topic: TopicMaker
) -> None:
    plant = Plant(bootstrap, new_topic(APPEND_TIME), new_topic(APPEND_TIME), transactional=True)
    plant.producer.begin_transaction()
    plant.put_input(1)
    plant.flush()
    broker = Broker(bootstrap)
    visible = [broker.ends(plant.input_topic, isolation)[1] for isolation in Isolation]
    with pytest.raises(LabError) as caught:
        list(read(bootstrap, plant.input_topic, {1: Span(0, 1)}, Isolation.COMMITTED, stall_s=1))
    abort = threading.Timer(1.0, plant.producer.abort_transaction, [30])
    abort.start()
    after_the_abort = list(read(bootstrap, plant.input_topic, {1: Span(0, 1)}, Isolation.COMMITTED, stall_s=20))
    abort.join()

    assert visible == [0, 1]
    assert caught.value.why == "partition 1 stands at 0 of 1; a transaction may be open there"
    assert after_the_abort == []


def test_waiting_ends_with_the_last_output_or_names_the_partition_that_lags(plant: Plant) -> None:
    topics = (plant.bootstrap, plant.input_topic, plant.output_topic)
    for partition in (0, 1, 1, 1):
        plant.put_input(partition)
    plant.flush()
    plant.put_output(0, 0)
    plant.put_output(1, 1)
    plant.flush()
    with pytest.raises(LabError) as caught:
        wait_until_caught_up(*topics, exactly_once=False, timeout_s=0.5)
    plant.put_output(1, 2)
    plant.flush()

    assert (caught.value.what, caught.value.why) == (
        f"topic {plant.output_topic}: the outputs have not caught up with the inputs after 0.5 s",
        "input partition 1 is answered up to offset 1, its last input is at 2",
    )
    assert wait_until_caught_up(*topics, exactly_once=False, timeout_s=0.5) == {0: 0, 1: 2}


@pytest.mark.parametrize("which", ["input", "output"])
def test_gaps_are_refused_where_append_times_are_not_kept(bootstrap: str, new_topic: TopicMaker, which: str) -> None:
    kept, not_kept = new_topic(APPEND_TIME), new_topic({"message.timestamp.type": "CreateTime"})
    inputs, outputs = (not_kept, kept) if which == "input" else (kept, not_kept)
    with pytest.raises(LabError) as caught:
        measure_gaps(bootstrap, inputs, outputs, Window(0, 1))

    assert (caught.value.what, caught.value.why) == (
        f"topic {not_kept}: its records do not carry the time of their append",
        "message.timestamp.type is CreateTime",
    )


def test_a_record_from_before_append_times_were_kept_is_refused_by_its_place(
    bootstrap: str, new_topic: TopicMaker
) -> None:
    plant = Plant(bootstrap, new_topic({"message.timestamp.type": "CreateTime"}), new_topic(APPEND_TIME))
    plant.put_input(2)
    plant.flush()
    setting = ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, plant.input_topic, incremental_configs=[setting])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(timeout=20)
    with pytest.raises(LabError) as caught:
        measure_gaps(bootstrap, plant.input_topic, plant.output_topic, last_seconds(1))

    assert caught.value.what == f"topic {plant.input_topic} partition 2 offset 0: does not carry the time of its append"


def test_an_output_for_a_partition_that_the_input_has_not_is_refused(plant: Plant) -> None:
    plant.put_output(PARTITIONS, 0)
    plant.flush()
    with pytest.raises(LabError, match=f"topic {plant.input_topic} has no such partition"):
        measure_gaps(plant.bootstrap, plant.input_topic, plant.output_topic, last_seconds(1))


def test_records_without_a_key_are_counted_together_in_each_partition(plant: Plant) -> None:
    for partition in (0, 1, 1):
        plant.put_input(partition, None)
    plant.flush()
    for partition, offset, count in ((0, 0, 1), (1, 0, 1), (1, 1, 2)):
        plant.put_output(partition, offset, count, None)
    plant.flush()

    found = check_counts(plant.bootstrap, plant.input_topic, plant.output_topic, exactly_once=True)
    assert found == replace(RIGHT, inputs=3, outputs=3, keys=2)


def test_counts_are_refused_where_retention_has_taken_records(plant: Plant) -> None:
    write_counted(plant, 3, 1)
    cut = TopicPartition(plant.output_topic, 1, 2)
    admin = AdminClient({"bootstrap.servers": plant.bootstrap})
    admin.delete_records([cut])[cut].result(timeout=20)
    with pytest.raises(LabError) as caught:
        check_counts(plant.bootstrap, plant.input_topic, plant.output_topic, exactly_once=False)

    assert caught.value.why == "partition 1 begins at offset 2"


def test_counts_are_refused_where_compaction_may_take_records(bootstrap: str, new_topic: TopicMaker) -> None:
    with pytest.raises(LabError, match=r"cleanup\.policy is compact"):
        check_counts(bootstrap, new_topic(APPEND_TIME), new_topic({"cleanup.policy": "compact"}), exactly_once=False)


def test_counts_without_inputs_are_no_success(plant: Plant) -> None:
    with pytest.raises(LabError, match="there is nothing to check"):
        check_counts(plant.bootstrap, plant.input_topic, plant.output_topic, exactly_once=False)


def test_a_topic_that_is_not_there_is_named(bootstrap: str, new_topic: TopicMaker) -> None:
    with pytest.raises(LabError, match=r"topic meter-test-none at .*: cannot be read"):
        measure_gaps(bootstrap, new_topic(APPEND_TIME), "meter-test-none", Window(0, 1))


def test_what_is_no_output_is_named_with_its_place(plant: Plant) -> None:
    plant.put_input(0)
    plant.flush()
    plant.producer.produce(plant.output_topic, b"oops", b"k", 2)
    plant.flush()
    with pytest.raises(LabError) as caught:
        check_counts(plant.bootstrap, plant.input_topic, plant.output_topic, exactly_once=False)

    assert (caught.value.what, caught.value.why) == (
        f"topic {plant.output_topic} partition 2 offset 0: is no output of the demo application",
        "its value is b'oops'",
    )


def test_a_window_that_is_not_over_is_refused(plant: Plant) -> None:
    now = round(time.time() * 1000)
    with pytest.raises(LabError, match="what is not written yet would count as a gap"):
        measure_gaps(plant.bootstrap, plant.input_topic, plant.output_topic, Window(now, now + 60_000))


def test_the_meter_leaves_no_consumer_group_behind(plant: Plant) -> None:
    write_counted(plant, 2, 1)
    check_counts(plant.bootstrap, plant.input_topic, plant.output_topic, exactly_once=True)
    # A client that nothing refers to is closed at once, and with it what it was asked.
    admin = AdminClient({"bootstrap.servers": plant.bootstrap})
    groups = admin.list_consumer_groups().result(timeout=20).valid

    assert [group.group_id for group in groups if "meter" in group.group_id] == []
