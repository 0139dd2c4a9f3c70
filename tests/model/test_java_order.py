"""Hashes and orders as Java gives them; the expected values were printed by a JVM (Java 17)."""

from uuid import UUID

import pytest

from streamapp.core.assignors.java_order import HashOrder, PriorityQueue, hash_set_order, string_hash, uuid_hash


@pytest.mark.parametrize(("text", "code"), [("", 0), ("a", 97), ("hello", 99162322), ("Aa", 2112), ("BB", 2112)])
def test_a_string_has_javas_hash(text: str, code: int) -> None:
    assert string_hash(text) == code


def test_a_negative_hash_is_its_32_bits() -> None:
    assert string_hash("polygenelubricants") == 0x80000000


def test_a_uuid_has_javas_hash() -> None:
    assert uuid_hash(UUID("bbb83e43-b1af-4b2d-a60a-94a7091684d0")) == 2768987417


def test_a_hash_map_lists_by_bucket_and_grows() -> None:
    names = [f"k{number}" for number in range(13)]
    order = HashOrder(string_hash)
    for name in names:
        order.put(name)
    listed = ["k0", "k1", "k2", "k3", "k4", "k5", "k11", "k6", "k10", "k7", "k8", "k12", "k9"]
    assert list(order) == listed
    assert hash_set_order((name, string_hash(name)) for name in names) == listed


def test_keys_of_one_bucket_stand_as_they_were_put_and_the_other_way_round_if_computed() -> None:
    put, computed = HashOrder(string_hash), HashOrder(string_hash)
    for name in ("Aa", "BB", "Aa"):
        put.put(name)
        computed.compute(name)
    assert (list(put), list(computed)) == (["Aa", "BB"], ["BB", "Aa"])


def test_equal_keys_leave_a_priority_queue_in_the_order_of_its_heap() -> None:
    queue = PriorityQueue(len, ["a", "b", "c", "d", "ee"])
    assert [queue.poll() for _ in range(len(queue))] == ["a", "b", "d", "c", "ee"]


def test_an_item_is_removed_from_the_middle() -> None:
    queue = PriorityQueue(int, ["1", "5", "2", "9", "6", "4", "3"])
    queue.remove("9")
    assert queue.heap == ["1", "3", "2", "5", "6", "4"]
