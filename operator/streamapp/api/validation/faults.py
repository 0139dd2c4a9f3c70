"""What is wrong with an object, as sentences for its author, one per field.

Made by `reading` from pydantic's errors and by `conflicts`; shown in the condition Stalled and by the command line.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_OUR_TYPES = frozenset({"text", "duration", "template", "rule"})
_PLAIN = {
    "missing": "is required",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
    "enum": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "extra_forbidden": "is no field of a StreamApp",
}
_LONGEST_SHOWN = 64


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One field and what is wrong with it."""

    field: str
    """Its path: `spec.scaleDown.timeout`."""
    sentence: str
    """Continues the path: `must be …`."""

    def __str__(self) -> str:
        return f"{self.field} {self.sentence}"


def faults_of(error: ValidationError, root: str) -> tuple[Fault, ...]:
    """Tell pydantic's errors in our words, once each, in the order of the fields."""
    errors = error.errors(include_url=False)
    # A list that is too short for want of one sound entry has that entry's fault, not another one.
    places = {details["loc"][:-1] for details in errors}
    real = [details for details in errors if details["type"] != "too_short" or details["loc"] not in places]
    return tuple(sorted({_fault(details, root) for details in real}))


def _fault(details: ErrorDetails, root: str) -> Fault:
    path = root + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in details["loc"])
    context: dict[str, Any] = details.get("ctx", {})
    kind = details["type"]
    if kind in _OUR_TYPES:
        sentence = details["msg"]
        path += f".{context['field']}" if kind == "rule" else ""
    else:
        sentence = _PLAIN[kind].format_map(context) if kind in _PLAIN else f"is not valid: {details['msg']}"
    return Fault(path, sentence + _instead_of(kind, details["input"]))


def _instead_of(kind: str, value: object) -> str:
    """What was found, where that is short and not there for the sentence anyway."""
    if kind in {"missing", "rule", "extra_forbidden"} or not isinstance(value, str | int | float):
        return ""
    shown = repr(value)
    return f", not {shown}" if len(shown) <= _LONGEST_SHOWN else ""
