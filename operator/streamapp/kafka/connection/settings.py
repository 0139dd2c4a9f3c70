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
from urllib.parse import urlsplit

from streamapp.kafka.connection.allowed_brokers import EVERY_BROKER, AllowedBrokers
from streamapp.kafka.connection.errors import InvalidSettingsError
from streamapp.kafka.connection.jaas import login_options

_PROTOCOLS = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}
_OAUTH = "OAUTHBEARER"
_MECHANISMS = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    _OAUTH: "OAuthBearerLoginModule",
}

PROTOCOL = "security.protocol"
MECHANISM = "sasl.mechanism"
TRUST = "ssl.truststore.certificates"
CHAIN = "ssl.keystore.certificate.chain"
KEY = "ssl.keystore.key"
_JAAS = "sasl.jaas.config"
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"
_TOKEN_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 (a property's name)
_CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
_CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 (a property's name)
_SCOPE = "sasl.oauthbearer.scope"
_URLENCODE = "sasl.oauthbearer.header.urlencode"
_CALLBACK = "sasl.login.callback.handler.class"
_OWN_CALLBACK = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
"""The class that does in Java what `tokens` does here; no other can be honoured."""
_TRANSLATED = {
    PROTOCOL,
    MECHANISM,
    _JAAS,
    "ssl.truststore.type",
    "ssl.keystore.type",
    TRUST,
    CHAIN,
    KEY,
    "ssl.key.password",
    _IDENTIFICATION,
    _TOKEN_ENDPOINT,
    _CLIENT_ID,
    _CLIENT_SECRET,
    _SCOPE,
    _URLENCODE,
    _CALLBACK,
}
_SECURITY_PREFIXES = ("sasl.", "ssl.", "security.")
# TLS 1.2 and 1.3 are what this client speaks anyway.
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
class ClientCredentials:
    """A client of a token server, for OAUTHBEARER."""

    token_endpoint: str
    """URL, http or https."""
    client_id: str
    secret: str = field(repr=False)
    scope: str | None = None
    urlencodes_header: bool = False
    """Whether ID and secret are URL-encoded in the header, as RFC 6749 wants and Kafka by default does not."""
    trusted: str | None = None
    """Certificates to trust as the token server's, PEM text; None for the system's."""
    extensions: tuple[tuple[str, str], ...] = ()
    """SASL extensions, such as `logicalCluster`."""

    @property
    def address(self) -> Address:
        """Where the token server listens: one more place that the operator connects to for this application."""
        parts = urlsplit(self.token_endpoint)
        return Address(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A cluster and the identity to use on it. Equal settings can share a connection."""

    bootstrap: tuple[Address, ...]
    tls: Tls | None = None
    sasl: Sasl | ClientCredentials | None = None
    allowed: AllowedBrokers = EVERY_BROKER
    """Where the operator may connect at all."""
    ignored: tuple[str, ...] = field(default=(), compare=False)
    """Names of properties that have no meaning for reading, sorted."""

    def __str__(self) -> str:
        return ",".join(str(address) for address in self.bootstrap)


def has_meaning(name: str) -> bool:
    """Whether a property is translated here."""
    return name in _TRANSLATED


def read_settings(
    bootstrap_servers: str, properties: Mapping[str, str], allowed: AllowedBrokers = EVERY_BROKER
) -> KafkaSettings:
    """Translate `spec.kafka`: InvalidSettingsError names every property that is wrong or cannot be honoured."""
    # As Java's client: a Secret made from a file ends with a line break that nobody means.
    properties = {name: value.strip() for name, value in properties.items()}
    foreign = sorted(set(properties) - _TRANSLATED)
    refused = [name for name in foreign if name.startswith(_SECURITY_PREFIXES) and name not in _HARMLESS]
    if refused:
        raise _invalid(
            f"{', '.join(refused)} cannot be honoured",
            "use PEM text in ssl.truststore.certificates, ssl.keystore.certificate.chain and ssl.keystore.key, and "
            f"sasl.mechanism {', '.join(_MECHANISMS)} with sasl.jaas.config",
        )
    protocol = _protocol(properties)
    bootstrap = _addresses(bootstrap_servers)
    for address in bootstrap:
        check_allowed(address, allowed)
    sasl = _sasl(properties) if protocol.startswith("SASL") else None
    if isinstance(sasl, ClientCredentials):
        check_allowed(sasl.address, allowed)
    return KafkaSettings(
        bootstrap=bootstrap,
        allowed=allowed,
        tls=_tls(properties) if protocol.endswith("SSL") else None,
        sasl=sasl,
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


def _protocol(properties: Mapping[str, str]) -> str:
    """Read the protocol; a property that it makes meaningless shows that the author meant another one."""
    protocol = properties.get(PROTOCOL, "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise _invalid(f"security.protocol is {protocol!r}", f"use one of {', '.join(sorted(_PROTOCOLS))}")
    unused = {name for name in properties if name.startswith("sasl.") and not protocol.startswith("SASL")}
    # A callback's certificates and the like; TLS to a token server is set in sasl.jaas.config.
    unused |= {
        name
        for name in properties
        if name.startswith("ssl.") and name not in _HARMLESS and not protocol.endswith("SSL")
    }
    if unused:
        stated = f"security.protocol is {protocol}" if PROTOCOL in properties else "security.protocol is missing"
        raise _invalid(
            f"{stated}, so {', '.join(sorted(unused))} would have no effect",
            "set spec.kafka.securityProtocol, or security.protocol in the Secret, to SSL, SASL_SSL or SASL_PLAINTEXT",
        )
    return protocol


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
        if properties.get(store, "PEM").upper() != "PEM":
            raise _invalid(f"{store} is {properties[store]!r}", "convert the store to PEM")
    identification = properties.get(_IDENTIFICATION, "https").lower()
    if identification not in {"https", ""}:
        raise _invalid(f"{_IDENTIFICATION} is {identification!r}", "use https, or leave it empty to switch it off")
    if (CHAIN in properties) != (KEY in properties):
        raise _invalid(f"one of {CHAIN} and {KEY} is missing", "give both for mutual TLS, or none")
    return Tls(
        trusted=properties.get(TRUST),
        certificate_chain=properties.get(CHAIN),
        key=properties.get(KEY),
        key_password=properties.get("ssl.key.password"),
        verify_host=identification == "https",
    )


def _sasl(properties: Mapping[str, str]) -> Sasl | ClientCredentials:
    mechanism = properties.get(MECHANISM, "GSSAPI")
    module = _MECHANISMS.get(mechanism)
    if module is None:
        raise _invalid(f"sasl.mechanism {mechanism} is not supported", f"use one of {', '.join(_MECHANISMS)}")
    options = login_options(properties.get(_JAAS, ""), module)
    if mechanism == _OAUTH:
        return _client_credentials(properties, options)
    username, password = options.get("username"), options.get("password")
    if not username or password is None:
        raise _invalid("sasl.jaas.config names no username and password", 'add username="…" password="…"')
    return Sasl(mechanism, username, password)


def _client_credentials(properties: Mapping[str, str], options: Mapping[str, str]) -> ClientCredentials:
    if properties.get(_CALLBACK, _OWN_CALLBACK) != _OWN_CALLBACK:
        raise _invalid(f"{_CALLBACK} cannot be honoured", f"use {_OWN_CALLBACK}: client ID and client secret")
    client_id = properties.get(_CLIENT_ID) or options.get("clientId")
    secret = properties.get(_CLIENT_SECRET) or options.get("clientSecret")
    if not client_id or not secret:
        raise _invalid(
            "sasl.jaas.config names no clientId and clientSecret",
            f'add clientId="…" clientSecret="…", or set {_CLIENT_ID} and {_CLIENT_SECRET}',
        )
    return ClientCredentials(
        token_endpoint=_url(properties.get(_TOKEN_ENDPOINT, "")),
        client_id=client_id,
        secret=secret,
        scope=properties.get(_SCOPE) or options.get("scope"),
        urlencodes_header=properties.get(_URLENCODE, "false").lower() == "true",
        trusted=options.get(TRUST),
        extensions=_extensions(options),
    )


def _extensions(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    prefix = "extension_"
    found = {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}
    wrong = [
        name
        for name, value in found.items()
        if name == "auth" or not re.fullmatch(r"[A-Za-z]+", name) or not re.fullmatch(r"[\x20-\x7e\t\r\n]+", value)
    ]
    if wrong:
        raise _invalid(f"sasl.jaas.config has extensions that RFC 7628 has not: {', '.join(wrong)}", "remove them")
    return tuple(sorted(found.items()))


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    # Credentials in a URL would appear in logs.
    if not is_usable or "@" in parts.netloc:
        raise _invalid(f"{_TOKEN_ENDPOINT} is no URL of a server", "write https://host/path, without credentials in it")
    return text
