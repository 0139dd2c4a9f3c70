"""What a pod template says about its application: by variables and arguments, as launchers name them. Pure.

A setting is known only if all places that name it agree and give it as plain text. Nothing is guessed.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamapp.api.v1alpha1.pod_template import mapping, mappings

APPLICATION_ID = "applicationid"
BOOTSTRAP_SERVERS = "bootstrapservers"
STATE_DIR = "statedir"
STANDBYS = "numstandbyreplicas"
SECURITY_PROTOCOL = "securityprotocol"
_OPTIONS = frozenset({"JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "JAVA_OPTS"})
_PROTOCOL = re.compile(r"^[A-Za-z_]+://")


@dataclass(frozen=True, slots=True)
class Hint:
    """What was found about one setting."""

    values: frozenset[str]
    is_hidden: bool
    """Whether a place that names it takes it from elsewhere: a Secret, another variable."""

    @property
    def value(self) -> str | None:
        """The value; None where there is none, or not one only."""
        return next(iter(self.values)) if len(self.values) == 1 and not self.is_hidden else None


def hint(container: Mapping[str, Any], setting: str) -> Hint:
    """Look for a setting of the application.

    Args:
        container: The application's container.
        setting: One of the names above: Kafka's, in lower case, without its dots.
    """
    found = [value for name, value in _given(container) if _squeezed(name).endswith(setting)]
    known = {value for value in found if value is not None and "$(" not in value}
    return Hint(frozenset(known), any(value is None or "$(" in value for value in found))


def brokers(container: Mapping[str, Any]) -> Hint:
    """The bootstrap brokers, as the resource takes them: without protocols and spaces."""
    found = hint(container, BOOTSTRAP_SERVERS)
    values = {",".join(_PROTOCOL.sub("", one.strip()) for one in value.split(",")) for value in found.values}
    return Hint(frozenset(values), found.is_hidden)


def _given(container: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Each name with its value; None where the value stands elsewhere."""
    for variable in mappings(container.get("env")):
        name, value = str(variable.get("name")), variable.get("value")
        if name in _OPTIONS:
            yield from _of_words(_split(str(value or "")))
        else:
            yield name, None if mapping(variable.get("valueFrom")) else str(value or "")
    yield from _of_words([str(one) for field in ("command", "args") for one in container.get(field) or ()])


def _of_words(words: list[str]) -> Iterator[tuple[str, str | None]]:
    """`--name value`, `--name=value` and `-Dname=value`."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if equals:
            yield name.removeprefix("-D"), value
        elif word.startswith("--") and following and not following.startswith("-"):
            yield word, following


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _squeezed(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()
