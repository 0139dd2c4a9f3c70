"""The Deployment of the operator's replicas: it starts each again on its node, and says who leads.

Stands where `instance.Lives` does in worlds without a Lease.
"""

import random
from collections.abc import Callable
from contextvars import Context
from datetime import timedelta

from tests.prove.replicas.replica import Node, Replica, Surroundings
from tests.prove.story import Disturbance

AGAIN = 2.0
"""Seconds until an ended replica is started again."""


class Deployment:
    """All replicas of a story."""

    def __init__(self, around: Surroundings, count: int, apart: float, chance: random.Random) -> None:
        """Prepare so many nodes, whose clocks are up to `apart` seconds off; the only one's is ahead by as much."""
        self._around, self._starts, self._is_over = around, 0, False
        self._terms = 0
        self._nodes = [Node(f"operator-{number}") for number in range(count)]
        for node in self._nodes:
            node.clock = timedelta(seconds=chance.uniform(-apart, apart) if count > 1 else apart)
        self.all: list[Replica] = []
        """Those that run."""
        around.board.next_term, around.board.frozen = self._next_term, self._frozen

    def begin(self) -> None:
        """Start all."""
        for number, node in enumerate(self._nodes):
            self._around.loop.call_later(0.3 * number, self._start, node)

    def end(self) -> None:
        """The story is over."""
        self._is_over = True
        self._all_die()

    @property
    def present(self) -> Replica | None:
        """Who leads."""
        return next((one for one in self.all if one.leads()), None)

    def deeds(self, _: int = 0) -> dict[str, Callable[[int], object]]:
        """What can befall them, by the name that a story has for it."""
        return {
            "die": lambda _: self._leader(Replica.die),
            "leader-dies": lambda _: self._leader(Replica.die),
            "leader-stops": lambda _: self._leader(Replica.stop),
            "leader-freezes": lambda seconds: self._leader(lambda one: one.freeze("", seconds)),
            "leader-cut-off": lambda seconds: self._leader(lambda one: one.be_cut_off(seconds)),
            "standby-dies": lambda number: self._standby(number, Replica.die),
            "standby-freezes": lambda seconds: self._standby(0, lambda one: one.freeze("", seconds)),
            "all-die": lambda _: self._all_die(),
            "clock-step": lambda seconds: self._leader(lambda one: _step(one.node, seconds)),
        }

    def _all_die(self) -> None:
        for one in list(self.all):
            one.die()

    def _leader(self, then: Callable[[Replica], object]) -> None:
        leader = self.present
        if leader is not None:
            then(leader)

    def _standby(self, number: int, then: Callable[[Replica], object]) -> None:
        others = [one for one in self.all if not one.leads()]
        if others:
            then(others[number % len(others)])

    def _start(self, node: Node) -> None:
        if not self._is_over:
            self._starts += 1
            self.all.append(Replica(self._around, node, self._starts, self._ended))

    def _ended(self, replica: Replica) -> None:
        if replica in self.all:
            self.all.remove(replica)
            self._around.loop.call_later(AGAIN, self._start, replica.node, context=Context())

    def _frozen(self, how: str) -> None:
        if how == "-raise":
            back = Disturbance("second", 0, "wish-back")
            self._around.loop.call_later(4.0, self._around.board.strikes, back, context=Context())

    def _next_term(self) -> int:
        self._terms += 1
        return self._terms


def _step(node: Node, seconds: int) -> None:
    node.clock += timedelta(seconds=seconds)
