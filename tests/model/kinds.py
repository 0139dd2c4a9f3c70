"""The three assignors: how to make a case, what the model answers, and where the Java class is."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.model import answers, cases
from tests.model.answers import Answer
from tests.model.cases import Case

STREAMS = "kafka-streams"
BROKER = "kafka-group-coordinator"


@dataclass(frozen=True, slots=True)
class Kind:
    """One assignor."""

    name: str
    part: str
    """Of Kafka: the artifact that has the class."""
    case: Callable[[Random], Case]
    answer: Callable[[Case, str], Answer]
    versions: tuple[str, ...]
    """What is compared by default: one version of each release that answers in its own way, and the common ones."""


STOCK = Kind(
    "stock",
    STREAMS,
    cases.stock_case,
    answers.stock_answer,
    ("2.7.2", "3.1.2", "3.2.3", "3.3.2", "3.8.1", "3.9.2", "4.1.2", "4.2.1", "4.3.1"),
)
LEARNER = Kind("learner", STREAMS, cases.learner_case, answers.learner_answer, ("4.2.1",))
STICKY = Kind("sticky", BROKER, cases.sticky_case, answers.sticky_answer, ("4.2.1", "4.2.2", "4.3.1", "4.4.0"))
KINDS = (STOCK, LEARNER, STICKY)
