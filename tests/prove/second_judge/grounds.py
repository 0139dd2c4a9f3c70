"""Where an example begins: kinds of application, each brought up by the operator itself and then at rest.

Bringing one up takes a part of a second; it is done once for each process and copied for each example.
"""

from dataclasses import dataclass
from typing import Any

from tests.prove.group import Shape

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ground:
    """One kind of application."""

    name: str
    replicas: int
    standbys: int = 1
    threads: int = 1
    restore: float = 40_000.0
    """Records a second that a copy catches up with."""
    rate: float = 50.0
    on_demand: bool = False

    @property
    def shape(self) -> Shape:
        """As the simulated group takes it."""
        return Shape(
            threads=self.threads,
            standbys=self.standbys,
            restore=self.restore,
            rate=self.rate,
            on_demand=self.on_demand,
        )

    @property
    def spec(self) -> Json:
        """What the StreamApp says beside its usual fields."""
        return {"agent": {"enabled": True}, "learners": {"source": "OnDemand"}} if self.on_demand else {}


GROUNDS = {
    one.name: one
    for one in (
        Ground("four pods", 4),
        Ground("three pods of two threads", 3, threads=2),
        Ground("two standbys", 3, standbys=2),
        Ground("slow restore", 3, restore=900.0),
        Ground("on demand", 3, standbys=0, on_demand=True),
        Ground("no copies", 3, standbys=0),
    )
}
