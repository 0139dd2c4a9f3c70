"""Reads `sasl.jaas.config`, the login of a client as Kafka's Java client writes it.

Used by `settings`. The text comes from the Secret of an application's owner, so reading it takes time in proportion to
its length, and its length has a bound.
"""

import re

from streamapp.kafka.connection.errors import InvalidSettingsError

MAX_LENGTH = 16 * 1024
"""Characters; a login can have a certificate in it."""

_LOGIN = re.compile(r"(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<options>.*);", re.DOTALL)
# Anchored at the end of the option before, and possessive: no character is looked at twice.
_OPTION = re.compile(
    r"\s*+(?P<name>[\w.\-]++)\s*+=\s*+"
    r"(?:\"(?P<double>(?:[^\"\\\n]|\\.)*+)\"|'(?P<single>(?:[^'\\\n]|\\.)*+)'|(?P<bare>[^\s\"';]++))",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# As java.io.StreamTokenizer, which the Java client reads with; any other escaped character means itself.
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def login_options(jaas: str, module: str) -> dict[str, str]:
    """Read the options of `<class> required key="value" …;`, the only form that Kafka accepts.

    `module` is the class name that the mechanism needs, without its package. InvalidSettingsError never carries a part
    of the text, which contains a password.
    """
    if len(jaas) > MAX_LENGTH:
        raise InvalidSettingsError(
            "client properties",
            f"sasl.jaas.config has {len(jaas)} characters, at most {MAX_LENGTH} are read",
            "name what the login needs only",
        )
    match = _LOGIN.fullmatch(jaas.strip())
    if match is None or match["module"].rpartition(".")[2] != module:
        raise _unreadable(module)
    options, text, position = {}, match["options"].rstrip(), 0
    while position < len(text):
        option = _OPTION.match(text, position)
        if option is None:
            raise _unreadable(module)
        value = option["double"] or option["single"] or option["bare"] or ""
        options[option["name"]] = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), value)
        position = option.end()
    return options


def _unreadable(module: str) -> InvalidSettingsError:
    return InvalidSettingsError(
        "client properties",
        "sasl.jaas.config cannot be read",
        f'write one entry: ….{module} required <name>="<value>" …;',
    )
