"""Kinds of text in a StreamApp: each with a pattern and the sentence that a user reads where it does not fit.

The sentence is the same whether the API server refuses an object or the operator finds one that got past it. Patterns
are of the kind that RE2 and Python understand alike.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema


@dataclass(frozen=True, slots=True)
class Text:
    """Marks a `str` field: how long it may be and, where it must have a form, which."""

    most: int
    pattern: str | None = None
    message: str = ""
    """Continues the field's name: `must be …`."""
    whole_numbers: bool = False
    """YAML reads `5` as a number where Kubernetes means text, as in quantities."""

    def read(self, value: object) -> str:
        """Check."""
        if self.whole_numbers and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise PydanticCustomError("text", "must be text")
        if len(value) > self.most:
            raise PydanticCustomError("text", "must have at most {most} characters", {"most": self.most})
        if self.pattern is not None and re.fullmatch(self.pattern, value, re.ASCII) is None:
            raise PydanticCustomError("text", "{sentence}", {"sentence": self.message})
        return value

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read text."""
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Give a string, or what Kubernetes calls an int-or-string."""
        schema: JsonSchemaValue = {"type": "string", "maxLength": self.most}
        if self.whole_numbers:
            schema = {"x-kubernetes-int-or-string": True, "maxLength": self.most}
        if self.pattern is None:
            return schema
        itself = "string(self)" if self.whole_numbers else "self"
        rule = f"{itself}.matches(r'^({self.pattern})$')"
        return {**schema, "x-kubernetes-validations": [{"rule": rule, "message": self.message}]}


INT32: dict[str, Any] = {"format": "int32"}
INT64: dict[str, Any] = {"format": "int64"}

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SEGMENT = r"([^/:.][^/:]*|\.[^/:.][^/:]*|\.\.[^/:]+)"
_HOST = r"([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
_BROKER = rf"{_HOST}:[0-9]{{1,5}}"

Percentage = Annotated[
    str, Text(most=8, pattern=r"[0-9]{1,2}(\.[0-9]{1,4})?", message="must be a percentage below 100, as text: '99.9'")
]

ApplicationId = Annotated[
    str,
    Text(
        # A changelog's name is `<application ID>-<store>-changelog`, and a topic has 249 characters.
        most=200,
        pattern=r"[a-zA-Z0-9._-]*[a-zA-Z0-9_-][a-zA-Z0-9._-]*",
        message="must consist of letters, digits, '.', '_' and '-', and not of dots alone",
    ),
]
Brokers = Annotated[
    str,
    Text(
        most=2048,
        pattern=rf"{_BROKER}(,{_BROKER})*",
        message="must be a comma-separated list of host:port without spaces",
    ),
]
ObjectName = Annotated[
    str,
    Text(
        most=253,
        pattern=rf"|{_LABEL}(\.{_LABEL})*",
        message="must be an object name: lower-case letters, digits, '-' and '.'",
    ),
]
RequiredName = Annotated[
    str,
    Text(
        most=253,
        pattern=rf"{_LABEL}(\.{_LABEL})*",
        message="must be an object name: lower-case letters, digits, '-' and '.'",
    ),
]
ContainerName = Annotated[
    str,
    Text(
        most=63,
        pattern=f"|{_LABEL}",
        message="must be a container name: lower-case letters, digits and '-'",
    ),
]
VolumeName = Annotated[
    str,
    Text(
        most=63,
        pattern=_LABEL,
        message="must be a volume name: lower-case letters, digits and '-'",
    ),
]
Folder = Annotated[
    str,
    Text(
        most=1024,
        pattern=f"(/{_SEGMENT})+",
        message="must be an absolute path without ':', '.', '..' or a trailing '/'",
    ),
]
OptionalFolder = Annotated[
    str,
    Text(
        most=1024,
        pattern=f"(/{_SEGMENT})*",
        message="must be an absolute path without ':', '.', '..' or a trailing '/'",
    ),
]
Quantity = Annotated[
    str,
    Text(
        most=32,
        pattern=r"0*[1-9][0-9]*(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?",
        message="must be a positive amount of storage, such as 20Gi",
        whole_numbers=True,
    ),
]
MemorySize = Annotated[
    str,
    Text(
        most=32,
        pattern=r"0*[1-9][0-9]*(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?",
        message="must be a positive amount of memory, such as 64Mi",
        whole_numbers=True,
    ),
]
Why = Annotated[str, Text(most=1024)]
"""A person's reason."""
TopologyText = Annotated[str, Text(most=128 * 1024)]
