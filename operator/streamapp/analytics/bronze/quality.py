"""What makes a line of the record bad: rules as expressions, each with the name that the quarantine shows.

They follow the contract field by field; what they cannot know is left to silver. Pure.
"""

import json
from collections.abc import Sequence
from enum import Enum
from functools import reduce
from hashlib import sha256
from typing import Any, Final, get_args

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType

from streamapp.analytics.tables.bronze_schemas import LINE, MODELS, OWN, VERSIONS, own_fields
from streamapp.flightrecord.schema import Line, schema

CORRUPT: Final = "_corrupt"
"""Holds the line where its JSON could not be read, or a field has another type."""
CONTRACT: Final = sha256(json.dumps(schema(), sort_keys=True).encode()).hexdigest()[:16]
"""Digest of what this program knows of the contract."""
FUTURE_SECONDS: Final = 600
NEWER: Final = "unknownVersion"
"""The rule that good lines break for a program that is older than they are."""

_OF_ALL: Final = tuple(name for name, field in Line.model_fields.items() if field.is_required())
REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    kind: tuple(name for name, field in own_fields(kind).items() if field.is_required()) for kind in MODELS
}
"""Fields that a line of a kind must have beside those of every line."""


def _words(annotation: Any) -> tuple[str, ...]:
    """The values of an enumeration, which can be optional; none of any other field."""
    options = [option for option in (annotation, *get_args(annotation)) if isinstance(option, type)]
    return tuple(str(member.value) for option in options if issubclass(option, Enum) for member in option)


WORDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    (kind, name): words
    for kind in MODELS
    for name, field in own_fields(kind).items()
    if (words := _words(field.annotation))
}
"""Words that a field can hold, by kind and field."""


def _any(conditions: list[Column]) -> Column:
    return reduce(lambda one, other: one | other, conditions)


def _by_kind(conditions: dict[str, list[Column]], kinds: Sequence[str]) -> Column:
    """True where one of the conditions of the line's own kind holds."""
    if len(kinds) == 1:
        return _any(conditions[kinds[0]])
    chosen = F.lit(False)
    for kind, of_kind in conditions.items():
        chosen = F.when(F.col("kind") == kind, _any(of_kind)).otherwise(chosen)
    return chosen


def _negative(kind: str) -> list[Column]:
    numbers = [field.name for field in (*LINE, *OWN[kind]) if isinstance(field.dataType, LongType | DoubleType)]
    return [F.coalesce(F.col(name) < 0, F.lit(False)) for name in numbers]


def _other_words() -> dict[str, list[Column]]:
    conditions: dict[str, list[Column]] = {}
    for (kind, name), words in WORDS.items():
        conditions.setdefault(kind, []).append(F.coalesce(~F.col(name).isin(*words), F.lit(False)))
    return conditions


def rule(now: Column, kinds: Sequence[str]) -> Column:
    """The first rule that a line breaks, null of a good one.

    Args:
        now: the time of the run.
        kinds: of all lines in question; if it is but one, they are known to be of it.
    """
    required = {kind: [F.col(name).isNull() for name in (*_OF_ALL, *names)] for kind, names in REQUIRED.items()}
    broken = F.col(CORRUPT).isNotNull()
    future = F.col("ts") > now + F.expr(f"INTERVAL {FUTURE_SECONDS} SECONDS")
    found = F.when(broken & F.col("kind").isNull(), "unparsable")
    # Before the types: those of another version may be others.
    found = found.when(~F.coalesce(F.col("v"), F.lit(1)).isin(*VERSIONS), NEWER).when(broken, "wrongType")
    if len(kinds) > 1:
        found = found.when(~F.coalesce(F.col("kind").isin(*kinds), F.lit(False)), "unknownKind")
    found = found.when(_by_kind(required, kinds), "missingField").when(_by_kind(_other_words(), kinds), "unknownWord")
    sample = F.col("kind") == "sample"
    if {"sample", "gap"} & {*kinds}:
        of_task = F.col("kind").isin("sample", "gap")
        found = found.when(of_task & ~F.col("task").rlike("^[0-9]+_[0-9]+$"), "malformedTask")
    found = found.when(_by_kind({kind: _negative(kind) for kind in kinds}, kinds), "negativeNumber")
    if "sample" in kinds:
        found = found.when(sample & (F.col("end_offset") < F.col("offset")), "endBeforeOffset")
    return found.when(future, "fromTheFuture")
