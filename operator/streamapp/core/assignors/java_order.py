"""Orders that Java's collections give and that assignments depend on.

`PriorityQueue` breaks ties by the layout of its heap, and `HashMap` lists by hash. Kafka's assignors use both.
Written from the documented algorithms: a binary heap, and a table of buckets that doubles at three quarters.
Java turns a bucket of eight or more into a tree. That is not modelled, since random names never fill a bucket so.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Generic, TypeVar
from uuid import UUID

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

DEFAULT_CAPACITY = 16
_WORD = 0xFFFFFFFF


KEPT_CHARACTERS = 100
"""More than any name has that Kafka makes up; whoever makes up longer ones takes no memory with them for good."""


def string_hash(text: str) -> int:
    """The 32 bits of `String.hashCode`."""
    return _kept_hash(text) if len(text) <= KEPT_CHARACTERS else _hash(text)


def _hash(text: str) -> int:
    found = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        found = (31 * found + int.from_bytes(units[at : at + 2])) & _WORD
    return found


_kept_hash = lru_cache(maxsize=4096)(_hash)  # an assignment asks for that of each name again and again


def uuid_hash(value: UUID) -> int:
    """The 32 bits of `UUID.hashCode`."""
    both = (value.int >> 64) ^ (value.int & 0xFFFFFFFFFFFFFFFF)
    return (both >> 32) ^ (both & _WORD)


def _bucket(of: int, capacity: int) -> int:
    return (of ^ (of >> 16)) & (capacity - 1)


def hash_set_order(hashes: Iterable[tuple[T, int]]) -> list[T]:
    """Items with their hashes, added in this order to an empty `HashSet`, as it lists them."""
    items = list(hashes)
    capacity = DEFAULT_CAPACITY
    while len(items) > capacity * 3 // 4:
        capacity *= 2
    return [item for item, _ in sorted(items, key=lambda one: _bucket(one[1], capacity))]


class HashOrder(Generic[K]):
    """The order in which a `HashMap` lists its keys."""

    def __init__(self, hash_of: Callable[[K], int], capacity: int = DEFAULT_CAPACITY) -> None:
        self._hash_of = hash_of
        self._capacity = 1
        while self._capacity < capacity:
            self._capacity *= 2
        self._ranks: dict[K, int] = {}
        """In a bucket, lower ranks come first."""

    def put(self, key: K) -> None:
        """Add a key as `put` and `putIfAbsent` do: last of its bucket."""
        if key not in self._ranks:
            self._ranks[key] = len(self._ranks)
            self._grow(len(self._ranks))

    def compute(self, key: K) -> None:
        """Add a key as `computeIfAbsent` does: first of its bucket, and the table grows one call later."""
        self._grow(len(self._ranks))
        if key not in self._ranks:
            self._ranks[key] = -len(self._ranks)

    def _grow(self, size: int) -> None:
        if size > self._capacity * 3 // 4:
            self._capacity *= 2

    def __iter__(self) -> Iterator[K]:
        return iter(
            sorted(self._ranks, key=lambda key: (_bucket(self._hash_of(key), self._capacity), self._ranks[key]))
        )


class PriorityQueue(Generic[T]):
    """A binary heap that compares when it moves items, as `java.util.PriorityQueue`.

    The keys can change while items are inside. Then the heap can be out of order, and so is Java's.
    """

    def __init__(self, key: Callable[[T], Any], items: Iterable[T] = ()) -> None:
        self._key = key
        self.heap: list[T] = []
        """In the order in which Java iterates over it."""
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        return len(self.heap)

    def add(self, item: T) -> None:
        """Put in at the end and let it rise."""
        self.heap.append(item)
        self._rise(len(self.heap) - 1, item)

    def poll(self) -> T:
        """Take out the head; IndexError if there is none."""
        head = self.heap[0]
        last = self.heap.pop()
        if self.heap:
            self._sink(0, last)
        return head

    def remove(self, item: T) -> None:
        """Take out one item, wherever it is; ValueError if it is not there."""
        at = self.heap.index(item)
        last = self.heap.pop()
        if at < len(self.heap):
            self._sink(at, last)
            if self.heap[at] is last:
                self._rise(at, last)

    def _rise(self, at: int, item: T) -> None:
        heap, key = self.heap, self._key
        own = key(item)
        while at > 0:
            above = (at - 1) >> 1
            parent = heap[above]
            if own >= key(parent):
                break
            heap[at] = parent
            at = above
        heap[at] = item

    def _sink(self, at: int, item: T) -> None:
        heap, key = self.heap, self._key
        own, size = key(item), len(heap)
        half = size >> 1
        while at < half:
            below = 2 * at + 1
            least = key(heap[below])
            if below + 1 < size and least > (other := key(heap[below + 1])):
                below, least = below + 1, other
            if own <= least:
                break
            heap[at] = heap[below]
            at = below
        heap[at] = item
