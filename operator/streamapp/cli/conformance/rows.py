"""The rows of the report: what was asked, what was seen, whether it holds, and the next step. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

Json = dict[str, Any]


class Question(Enum):
    """What is asked, in the order of the report."""

    RIGHTS = "rights"
    DEFINITION = "definition"
    OPERATOR = "operator"
    START = "start"
    GROWTH = "growth"
    HOLD = "hold"
    STEP = "step"
    GAP = "gap"
    EVICTION = "eviction"
    IDENTITY = "identity"
    VOLUMES = "volumes"
    RECORDS = "records"
    WAY_BACK = "way back"

    @property
    def asked(self) -> str:
        """The question as a sentence."""
        return _ASKED[self]


_ASKED = {
    Question.RIGHTS: "Can this user make what the run needs?",
    Question.DEFINITION: "Does the API server serve the StreamApp?",
    Question.OPERATOR: "Does an operator lead?",
    Question.START: "Do two pods run every task and every copy?",
    Question.GROWTH: "Does a third replica come at once?",
    Question.HOLD: "Are the pods kept until the scale-down can go?",
    Question.STEP: "Does the scale-down go once tasks are covered?",
    Question.GAP: "How long did users wait in the scale-down?",
    Question.EVICTION: "Is the member of a killed pod evicted before its session ends?",
    Question.IDENTITY: "Is the restarted pod the same Kafka Streams process?",
    Question.VOLUMES: "Does the restarted pod get its own volume?",
    Question.RECORDS: "Has every record its output?",
    Question.WAY_BACK: "Do the pods run on without the operator?",
}


class Result(Enum):
    """What the run says to a question."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The answer to one question."""

    question: Question
    result: Result
    seen: str
    """With figures and their units; why it was not tried."""
    next_step: str = "No action needed."
    seconds: float | None = None
    """The figure, if it is a time."""

    @property
    def document(self) -> Json:
        """The row for programs."""
        return {
            "check": self.question.value,
            "asked": self.question.asked,
            "result": self.result.value,
            "seen": self.seen,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "next": self.next_step,
        }


def passed(question: Question, seen: str, seconds: float | None = None) -> Row:
    """A row that holds."""
    return Row(question=question, result=Result.PASS, seen=seen, seconds=seconds)


def failed(question: Question, seen: str, next_step: str, seconds: float | None = None) -> Row:
    """A row that does not hold."""
    return Row(question=question, result=Result.FAIL, seen=seen, next_step=next_step, seconds=seconds)


def not_tried(question: Question, why: str, next_step: str = "Fix what failed, and run the command again.") -> Row:
    """A row that nothing is known of."""
    return Row(question=question, result=Result.NOT_TRIED, seen=why, next_step=next_step)


def completed(rows: Iterable[Row], why: str) -> tuple[Row, ...]:
    """All questions in their order; those without a row were not tried, for this reason."""
    by_question = {row.question: row for row in rows}
    return tuple(by_question.get(question) or not_tried(question, why) for question in Question)
