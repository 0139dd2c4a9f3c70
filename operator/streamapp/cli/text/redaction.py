"""Removes what could be a secret from Kubernetes objects and from texts before they leave a user's hands.

Objects lose every value of the fields where people put secrets, whatever the value looks like: environment variables,
arguments, commands, HTTP headers, attributes of volumes, foreign annotations. Every text that is left, and every log,
loses what looks like a secret.
"""

import re
from collections.abc import Mapping
from typing import Any

from streamapp.api.names import GROUP

Json = dict[str, Any]
REMOVED = "<removed>"
_WHOLE = frozenset({"args", "command", "volumeAttributes", "data", "stringData", "binaryData"})
"""Fields of which nothing is kept."""
_NAMED_VALUES = frozenset({"env", "httpHeaders"})
"""Lists of names with values: the names are kept, and references to Secrets and ConfigMaps."""
_REVEALING_NAME = r"(?:pass(?:word|wd|phrase)?|secret|token|api[._-]?key|access[._-]?key|private[._-]?key|credentials?)"
_PATTERNS = (
    re.compile(r"-----BEGIN [A-Z ]*(?:PRIVATE KEY|CERTIFICATE)-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),
    re.compile(r"(?i)(?<=bearer )[\w.~+/=-]+"),
    re.compile(r"(?i)(?<=basic )[\w+/=-]{8,}"),
    re.compile(r"(?<=://)[^\s/@]+(?=@)"),
    re.compile(r"(?i)(?<=sasl\.jaas\.config)\s*[=:]\s*[^\n]+"),
)
_ASSIGNMENT = re.compile(
    rf"(?i)(?P<name>[\w.-]*{_REVEALING_NAME}[\w.-]*[\"']?\s*[=:]\s*)(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s,;}}\])]+)"
)


class Redaction:
    """One pass over objects and texts, which counts what it removed."""

    def __init__(self) -> None:
        """Begin with a count of zero."""
        self.removed = 0

    def text(self, text: str) -> str:
        """The text without what looks like a secret: keys, tokens, passwords, credentials in an address."""
        for pattern in _PATTERNS:
            text = pattern.sub(self._gone, text)
        return _ASSIGNMENT.sub(self._without_value, text)

    def document(self, value: Any, field: str = "") -> Any:
        """The object, or the value of one of its fields, without what could be a secret."""
        if field in _WHOLE and value:
            return self._gone()
        if field == "annotations" and isinstance(value, Mapping):
            return {name: self._annotation(name, text) for name, text in value.items()}
        if isinstance(value, Mapping):
            return {name: self.document(part, name) for name, part in value.items() if name != "fieldsV1"}
        if isinstance(value, list):
            return [self._named(one) if field in _NAMED_VALUES else self.document(one) for one in value]
        return self.text(value) if isinstance(value, str) else value

    def _annotation(self, name: str, text: str) -> str:
        return self.text(text) if name.partition("/")[0].endswith(GROUP) else self._gone()

    def _named(self, one: Json) -> Json:
        kept = {name: part for name, part in one.items() if name != "value"}
        return {**kept, "value": self._gone()} if one.get("value") else kept

    def _gone(self, _: object = None) -> str:
        self.removed += 1
        return REMOVED

    def _without_value(self, match: re.Match[str]) -> str:
        if match["value"].strip("\"'") in {"", REMOVED, "null", "true", "false"}:
            return match[0]
        return match["name"] + self._gone()
