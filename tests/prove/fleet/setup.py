"""How one operator is installed: its name, and what it watches."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setup:
    """Of one operator."""

    number: int = 0
    name: str = "streamapp-operator"
    """As the label on what it makes."""
    namespaces: tuple[str, ...] = ()
    """Those that it watches; empty: all."""
    restores: int = 0
    """Applications of one Kafka cluster that may make learners at once; 0: all of them."""
    watches_nodes: bool = False
    """Whether it has the right to see which nodes must be drained."""


ALONE = Setup()
NAMES = ("streamapp-operator", "second-operator")
"""Of the installations."""
PROCESSES_APART = 1_000
"""Between the numbers of the first processes of two operators."""
