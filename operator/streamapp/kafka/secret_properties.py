"""Client properties from Secrets as they are: with a key for each property, as Strimzi and cert-manager write them.

Called by the controller. It decides which keys mean which property; `settings` decides what can be honoured.

    ca.crt, ca-….crt       whom to trust as brokers; beside user.crt left out, since it signs clients there
    user.crt, tls.crt      the client's own certificate
    user.key, tls.key      its key
    any other key          a property under its Java name
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streamapp.kafka.connection.errors import InvalidSettingsError
from streamapp.kafka.connection.settings import CHAIN, KEY, TRUST, has_meaning

_AUTHORITY = re.compile(r"ca(-[^/]*)?\.crt")
"""Strimzi keeps an older authority as `ca-<its end>.crt` while brokers still have certificates of it."""
_OWN = {"user.crt": CHAIN, "tls.crt": CHAIN, "user.key": KEY, "tls.key": KEY}

_KEYS_NAMED = 5
"""Of Secrets in which something is missing."""


@dataclass(frozen=True, slots=True)
class SecretContent:
    """What a Secret holds."""

    name: str
    data: Mapping[str, bytes] = field(repr=False)


def client_properties(secrets: Sequence[SecretContent], given: Mapping[str, str]) -> Mapping[str, str]:
    """Put together what the Secrets and `given`, the fields of the StreamApp, say.

    Raises InvalidSettingsError for a property with two values, for one that is no text, and where Secrets are given and
    nothing says how to connect: whoever names a Secret does not mean to connect in plain text. Bytes under a key
    without meaning here, such as `user.p12`, are left out.
    """
    properties, sources = dict(given), dict.fromkeys(given, "the StreamApp")
    for secret in secrets:
        for name, value in _properties(secret).items():
            if properties.get(name, value) != value:
                raise InvalidSettingsError(
                    "client properties",
                    f"{name} has one value in {sources[name]} and another in secret {secret.name}",
                    "leave it out of one",
                )
            properties[name] = value
            sources[name] = f"secret {secret.name}"
    authorities = [text for secret in secrets for text in _authorities(secret)]
    if authorities and TRUST not in properties:
        properties[TRUST] = "\n".join(dict.fromkeys(authorities))
    if secrets and not any(value and has_meaning(name) for name, value in properties.items()):
        keys = sorted({key for secret in secrets for key in secret.data})[:_KEYS_NAMED]
        raise InvalidSettingsError(
            f"secret {', '.join(secret.name for secret in secrets)}",
            f"no key says how to connect; there are {', '.join(keys) or 'none'}",
            "give each property a key of its own, such as security.protocol; a whole file under one key is not read",
        )
    return properties


def _properties(secret: SecretContent) -> Mapping[str, str]:
    properties = {}
    for key, value in sorted(secret.data.items()):
        name = _OWN.get(key, key)
        if _AUTHORITY.fullmatch(key) or (name != key and name in secret.data):
            continue
        text = _text(secret, key, value, is_needed=has_meaning(name))
        if text is not None:
            properties[name] = text
    return properties


def _authorities(secret: SecretContent) -> Iterable[str]:
    if "user.crt" in secret.data:
        return ()
    found = (key for key in sorted(secret.data) if _AUTHORITY.fullmatch(key))
    return [text for key in found if (text := _text(secret, key, secret.data[key], is_needed=True))]


def _text(secret: SecretContent, key: str, value: bytes, *, is_needed: bool) -> str | None:
    try:
        return value.decode().strip()
    except UnicodeDecodeError as error:
        if not is_needed:
            return None
        raise InvalidSettingsError(
            f"secret {secret.name}", f"{key} is no text", "write text; certificates and keys as PEM"
        ) from error
