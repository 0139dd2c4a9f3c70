"""What all lines of the flight record share: types of their fields, and the fields that each line has.

`schema` has the kinds of lines.
"""

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

VERSION: Final = 1

Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Task = Annotated[str, Field(pattern=r"^[0-9]+_[0-9]+$")]
Offsets = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""Offsets of all changelogs of a task, summed. Transaction markers and compacted records count."""


def _in_micros(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


Time = Annotated[AwareDatetime, PlainSerializer(_in_micros, return_type=str)]
"""In UTC."""


class Part(BaseModel):
    """Fields of a line: camel case in JSON, no other fields, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )


class Line(Part):
    """The fields of every line."""

    v: Literal[1] = VERSION
    """Version of this contract."""
    cluster: str
    """Name of the Kubernetes cluster from the operator's settings; can be empty."""
    namespace: str
    app: str
    """Name of the StreamApp; empty on lines about the recorder itself."""
    uid: str
    """Of the StreamApp: a new StreamApp under an old name is another application."""
    ts: Time
    """Time of the observation or action."""
    recorder: str
    """The process that wrote the line: its pod and a random part, made at its start."""
    seq: Count
    """Rises by one with each line of that process, dropped lines included."""
