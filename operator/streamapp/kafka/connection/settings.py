"""How to reach one Kafka cluster: bootstrap servers and client properties under their Java names.

The properties come from a Secret that an application's owner wrote, so this is an allow-list: a property that is not
translated here never reaches a client library, where it could load a plugin, read one of the operator's files or call
a URL. Certificates and keys are therefore taken as PEM text only, never as a path.

A property that touches security and cannot be honoured is an error, since a connection without it is another one than
its author meant; any other is ignored and named in `KafkaSettings.ignored`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from streamapp.kafka.connection.allowed_brokers import EVERY_BROKER, AllowedBrokers
from streamapp.kafka.connection.errors import InvalidSettingsError

_PROTOCOLS = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}
_MECHANISMS = {"PLAIN": "PlainLoginModule", "SCRAM-SHA-256": "ScramLoginModule", "SCRAM-SHA-512": "ScramLoginModule"}

_TRUST = "ssl.truststore.certificates"
_CHAIN = "ssl.keystore.certificate.chain"
_KEY = "ssl.keystore.key"
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"
_TRANSLATED = {
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "ssl.truststore.type",
    "ssl.keystore.type",
    _TRUST,
    _CHAIN,
    _KEY,
    "ssl.key.password",
    _IDENTIFICATION,
}
_LONGEST_JAAS = 4096
"""Characters of `sasl.jaas.config`."""
_SECURITY_PREFIXES = ("sasl.", "ssl.", "security.")
# TLS 1.2 and 1.3 are what both clients speak anyway.
_HARMLESS = {"ssl.protocol", "ssl.enabled.protocols"}


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Tls:
    """Encryption; certificates and key as PEM text."""

    trusted: str | None = None
    """Certificates to trust; None for the system's."""
    certificate_chain: str | None = None
    """The client's own certificate, for mutual TLS."""
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    verify_host: bool = True


@dataclass(frozen=True, slots=True)
class Sasl:
    """A user name and a password."""

    mechanism: str
    """PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A cluster and the identity to use on it. Equal settings can share a connection."""

    bootstrap: tuple[Address, ...]
    tls: Tls | None = None
    sasl: Sasl | None = None
    allowed: AllowedBrokers = EVERY_BROKER
    """Where the operator may connect at all."""
    ignored: tuple[str, ...] = field(default=(), compare=False)
    """Names of properties that have no meaning for reading, sorted."""

    def __str__(self) -> str:
        return ",".join(str(address) for address in self.bootstrap)


def read_settings(
    bootstrap_servers: str, properties: Mapping[str, str], allowed: AllowedBrokers = EVERY_BROKER
) -> KafkaSettings:
    """Translate `spec.kafka`: InvalidSettingsError names every property that is wrong or cannot be honoured."""
    foreign = sorted(set(properties) - _TRANSLATED)
    refused = [name for name in foreign if name.startswith(_SECURITY_PREFIXES) and name not in _HARMLESS]
    if refused:
        raise _invalid(
            f"{', '.join(refused)} cannot be honoured",
            "use PEM text in ssl.truststore.certificates, ssl.keystore.certificate.chain and ssl.keystore.key, and "
            "sasl.mechanism PLAIN or SCRAM-SHA-256/512 with sasl.jaas.config",
        )
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise _invalid(f"security.protocol is {protocol!r}", f"use one of {', '.join(sorted(_PROTOCOLS))}")
    bootstrap = _addresses(bootstrap_servers)
    for address in bootstrap:
        check_allowed(address, allowed)
    return KafkaSettings(
        bootstrap=bootstrap,
        allowed=allowed,
        tls=_tls(properties) if protocol.endswith("SSL") else None,
        sasl=_sasl(properties) if protocol.startswith("SASL") else None,
        ignored=tuple(name for name in foreign if name not in refused),
    )


def check_allowed(address: Address, allowed: AllowedBrokers) -> None:
    """Raise InvalidSettingsError for an address that the administrator did not allow."""
    if not allowed.allow(address.host, address.port):
        raise InvalidSettingsError(
            f"broker {address}",
            "the administrator did not allow this address",
            "name another broker, or ask for it in the chart value kafka.allowedBrokers",
        )


def _invalid(why: str, next_step: str) -> InvalidSettingsError:
    return InvalidSettingsError("client properties", why, next_step)


def _addresses(servers: str) -> tuple[Address, ...]:
    addresses = tuple(_address(server.strip()) for server in servers.split(",") if server.strip())
    if not addresses:
        raise _invalid("bootstrapServers is empty", "name at least one host:port")
    return addresses


def _address(server: str) -> Address:
    # A listener's name, as in SASL_SSL://host:9093, is allowed by Java's client and says nothing here.
    match = re.fullmatch(
        r"(?:[A-Za-z0-9_]+://)?(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^:/\s]+)):(?P<port>\d{1,5})", server
    )
    if match is None or not 0 < int(match["port"]) < 65536:
        raise _invalid(f"bootstrapServers has {server!r}", "write host:port, with brackets round an IPv6 address")
    return Address(match["v6"] or match["host"], int(match["port"]))


def _tls(properties: Mapping[str, str]) -> Tls:
    for store in ("ssl.truststore.type", "ssl.keystore.type"):
        if properties.get(store, "PEM").strip().upper() != "PEM":
            raise _invalid(f"{store} is {properties[store]!r}", "convert the store to PEM")
    identification = properties.get(_IDENTIFICATION, "https").strip().lower()
    if identification not in {"https", ""}:
        raise _invalid(f"{_IDENTIFICATION} is {identification!r}", "use https, or leave it empty to switch it off")
    if (_CHAIN in properties) != (_KEY in properties):
        raise _invalid(f"one of {_CHAIN} and {_KEY} is missing", "give both for mutual TLS, or none")
    return Tls(
        trusted=properties.get(_TRUST),
        certificate_chain=properties.get(_CHAIN),
        key=properties.get(_KEY),
        key_password=properties.get("ssl.key.password"),
        verify_host=identification == "https",
    )


def _sasl(properties: Mapping[str, str]) -> Sasl:
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    module = _MECHANISMS.get(mechanism)
    if module is None:
        raise _invalid(f"sasl.mechanism {mechanism} is not supported", f"use one of {', '.join(_MECHANISMS)}")
    options = _login_options(properties.get("sasl.jaas.config", ""), module)
    username, password = options.get("username"), options.get("password")
    if not username or password is None:
        raise _invalid("sasl.jaas.config names no username and password", 'add username="…" password="…"')
    return Sasl(mechanism, username, password)


def _login_options(jaas: str, module: str) -> dict[str, str]:
    """Read `<class> required key="value" …;`, the only form Kafka accepts."""
    if len(jaas) > _LONGEST_JAAS:
        raise _invalid(
            f"sasl.jaas.config has {len(jaas)} characters, at most {_LONGEST_JAAS} are read",
            "name the user and the password only",
        )
    match = re.fullmatch(
        r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<options>.*);\s*", jaas, re.DOTALL
    )
    if match is None or match["module"].rpartition(".")[2] != module:
        raise _invalid(
            "sasl.jaas.config cannot be read", f'write ….{module} required username="…" password="…"; in one entry'
        )
    # A name begins where no letter stands before it, and is never given back letter by letter: else the time is
    # quadratic in the length of a text that someone else wrote, and the whole operator waits.
    pairs = re.findall(
        r"(?<!\w)(\w++)\s*+=\s*+(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s\"';]+))",
        match["options"],
        re.DOTALL,
    )
    return {name: re.sub(r"\\(.)", r"\1", double or single or bare) for name, double, single, bare in pairs}
