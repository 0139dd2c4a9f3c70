"""What makes a line of the record bad: rules as expressions, each with the name that the quarantine shows.

They follow the contract field by field; what they cannot know is left to silver. Pure.
"""

import json
from collections.abc import Callable, Sequence
from enum import Enum
from functools import reduce
from hashlib import sha256
from typing import Any, Final, get_args

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType

from streamapp.analytics.tables.bronze_schemas import LINE, MODELS, OWN, SAMPLES, VERSIONS, own_fields
from streamapp.flightrecord.contract import Line
from streamapp.flightrecord.schema import SampledCopies, schema

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
_OF_COPIES: Final = SampledCopies.model_fields
_LISTS: Final = ("offsets", "end_offsets")
_TASKS: Final = "^[0-9]+_[0-9]+( [0-9]+_[0-9]+)*$"


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
    required = {kind: [F.col(name).isNull() for name in (*_OF_ALL, *REQUIRED[kind])] for kind in OWN}
    found = _unreadable()
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
    return found.when(F.col("ts") > _future(now), "fromTheFuture")


def _unreadable() -> Column:
    broken = F.col(CORRUPT).isNotNull()
    found = F.when(broken & F.col("kind").isNull(), "unparsable")
    # Before the types: those of another version may be others.
    return found.when(~F.coalesce(F.col("v"), F.lit(1)).isin(*VERSIONS), NEWER).when(broken, "wrongType")


def _future(now: Column) -> Column:
    return now + F.expr(f"INTERVAL {FUTURE_SECONDS} SECONDS")


def rule_of_samples(now: Column) -> Column:
    """The same of a line that is known to be of `SAMPLES`: a bad copy makes the line bad, so that it counts whole."""
    required = [name for name, field in _OF_COPIES.items() if field.is_required()]
    words = {name: told for name, field in _OF_COPIES.items() if (told := _words(field.annotation))}

    def any_of(*broken: Callable[[Column], Column]) -> Column:
        return F.exists("copies", lambda copies: _any([F.coalesce(one(copies), F.lit(False)) for one in broken]))

    def unequal(copies: Column) -> Column:
        return _any([copies[name].isNotNull() & (F.size(copies[name]) != F.size(copies["tasks"])) for name in _LISTS])

    def negative(copies: Column) -> Column:
        numbers = [copies["ordinal"], copies["interval_seconds"], *(F.array_min(copies[name]) for name in _LISTS)]
        return _any([F.coalesce(number < 0, F.lit(False)) for number in numbers])

    def before(copies: Column) -> Column:
        return F.exists(F.zip_with(copies["offsets"], copies["end_offsets"], lambda at, end: end < at), lambda one: one)

    missing = [F.col(name).isNull() for name in (*_OF_ALL, *REQUIRED[SAMPLES])]
    missing += [F.size("copies") == 0, any_of(*[lambda one, name=name: one[name].isNull() for name in required])]
    other = [lambda one, name=name, told=told: ~one[name].isin(*told) for name, told in words.items()]
    found = _unreadable().when(_any(missing) | any_of(lambda one: F.size(one["tasks"]) == 0), "missingField")
    found = found.when(any_of(*other), "unknownWord").when(any_of(unequal), "unequalLists")
    found = found.when(any_of(lambda one: ~F.array_join(one["tasks"], " ", "null").rlike(_TASKS)), "malformedTask")
    found = found.when((F.col("seq") < 0) | (F.col("epoch") < 0) | any_of(negative), "negativeNumber")
    found = found.when(any_of(before), "endBeforeOffset")
    late = (F.col("ts") > _future(now)) | any_of(lambda one: one["at"] > _future(now))
    return found.when(late, "fromTheFuture")
