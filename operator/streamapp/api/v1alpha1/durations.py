"""Durations as people write them in YAML: `30s`, `20h`, `1h30m`. The one parser and the one printer.

Used by the models of spec and status, and by nobody who decides: the core has `timedelta`.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

PATTERN = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?([0-9]{1,6}ms)?$"
"""Without spaces, the largest unit first, each at most once. Understood by RE2 and by Python alike."""

LONGEST_TEXT = 32

_PARTS = re.compile(PATTERN, re.ASCII)
_UNITS = ("h", "m", "s", "ms")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


def parse_duration(text: str) -> timedelta:
    """Read `1h30m`; ValueError with a sentence for anything else."""
    match = _PARTS.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"{text!r} is no duration; write it like 30s, 20h or 1h30m, with the units h, m, s and ms")
    parts = zip(match.groups(), _UNITS, strict=True)
    return timedelta(
        milliseconds=sum(int(part.removesuffix(unit)) * _MILLISECONDS[unit] for part, unit in parts if part)
    )


def format_duration(duration: timedelta) -> str:
    """Write `1h30m`, to the millisecond; ValueError for a negative one."""
    if duration < timedelta(0):
        raise ValueError(f"{duration} is negative")
    rest = round(duration / timedelta(milliseconds=1))
    parts = []
    for unit in _UNITS:
        count, rest = divmod(rest, _MILLISECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


@dataclass(frozen=True, slots=True)
class DurationText:
    """Marks a `timedelta` field that is text in the resource; with limits where a person writes it."""

    least: timedelta | None = None
    most: timedelta | None = None

    @property
    def message(self) -> str:
        """What API server and operator say where the text is something else."""
        between = "" if self._limits is None else f" from {self._limits[0]} to {self._limits[1]}"
        return f"must be a duration{between}, written like 30s, 20h or 1h30m"

    @property
    def _limits(self) -> tuple[str, str] | None:
        if self.least is None or self.most is None:
            return None
        return format_duration(self.least), format_duration(self.most)

    def read(self, value: object) -> timedelta:
        """Read what was written, or what code has given as it is."""
        duration = value if isinstance(value, timedelta) else _parsed(value)
        if duration is None or not self._is_within(duration):
            raise PydanticCustomError("duration", "{sentence}", {"sentence": self.message})
        return duration

    def _is_within(self, duration: timedelta) -> bool:
        return (self.least is None or duration >= self.least) and (self.most is None or duration <= self.most)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read and write text."""
        return core_schema.no_info_plain_validator_function(
            self.read,
            serialization=core_schema.plain_serializer_function_ser_schema(
                format_duration, return_schema=core_schema.str_schema(), when_used="json"
            ),
        )

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Give a string; syntax and limits are one rule, so that there is one message."""
        schema: JsonSchemaValue = {"type": "string", "maxLength": LONGEST_TEXT}
        if self._limits is None:
            return {**schema, "pattern": PATTERN}
        least, most = self._limits
        within = f"duration(self) >= duration('{least}') && duration(self) <= duration('{most}')"
        rule = f"size(self) > 0 && self.matches(r'{PATTERN}') && {within}"
        return {**schema, "x-kubernetes-validations": [{"rule": rule, "message": self.message}]}


def _parsed(value: object) -> timedelta | None:
    try:
        return parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        return None
