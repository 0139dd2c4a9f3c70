"""Opens connections to brokers of one cluster: name resolution, TCP, TLS, authentication.

Used by `brokers`. What blocks (the resolver, reading certificates) runs in the few threads of `blocking_calls`, where
a dead name server never holds the places of another tenant.
"""

import asyncio
import ipaddress
import socket
import ssl
import tempfile
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from streamapp.kafka.connection.answer_limits import DEFAULT_LIMITS, AnswerLimits
from streamapp.kafka.connection.blocking_calls import BlockingCalls
from streamapp.kafka.connection.connection import Connection, certificate_refused
from streamapp.kafka.connection.errors import (
    BrokerUnreachableError,
    InvalidSettingsError,
    NotAuthenticatedError,
    cause,
    certificate_refusal,
)
from streamapp.kafka.connection.settings import Address, ClientCredentials, KafkaSettings, Sasl, Tls, check_allowed
from streamapp.kafka.connection.tokens import BearerToken, TokenSource


@dataclass(frozen=True, slots=True)
class Threads:
    """Where the process does what blocks, for all its clusters."""

    names: BlockingCalls = field(default_factory=lambda: BlockingCalls("kafka-names"))
    certificates: BlockingCalls = field(default_factory=lambda: BlockingCalls("kafka-keys", 4, 4, 1))
    """Apart from the names: the password of a key can be made to take hours."""

    def close(self) -> None:
        """Begin nothing more; waits for nothing."""
        self.names.close()
        self.certificates.close()


class Connector:
    """Knows the settings of one cluster and opens connections with them."""

    def __init__(self, settings: KafkaSettings, threads: Threads) -> None:
        self.settings = settings
        self._threads = threads
        self._context: ssl.SSLContext | None = None
        self._tokens: TokenSource | None = None
        self._brokers_key, self._token_servers_key = object(), object()
        """Of the calls that read certificates: the certificates themselves must not be kept as keys."""

    async def connect(
        self, address: Address, client_id: str, limits: AnswerLimits = DEFAULT_LIMITS, tenant: Hashable = None
    ) -> Connection:
        """Open an authenticated connection; the errors of a connection, or InvalidSettingsError.

        Args:
            address: The broker.
            client_id: How the operator calls itself there.
            limits: Bound the answers until the broker has accepted the credentials, and after that as a default.
            tenant: Whose places what blocks takes.
        """
        check_allowed(address, self.settings.allowed)  # brokers name others in their answers
        context, sasl = await self._tls_context(tenant), await self._sasl(tenant)
        try:
            reader, writer = await self._connect(address, context, tenant)
        except ssl.SSLCertVerificationError as error:
            raise _unreachable(
                address, f"its certificate is not trusted: {error.verify_message}", "check ssl.truststore.certificates"
            ) from error
        except (OSError, UnicodeError) as error:
            if isinstance(error, ssl.SSLError) and (refusal := certificate_refusal(error)) is not None:
                raise certificate_refused(address, refusal) from error
            advice = "check bootstrapServers, security.protocol, network policies and the brokers"
            raise _unreachable(address, cause(error), advice) from error
        connection = Connection(address, client_id, reader, writer, limits)
        try:
            await connection.introduce(sasl)
        except BaseException as error:
            connection.close()
            if isinstance(error, NotAuthenticatedError) and self._tokens is not None:
                self._tokens.forget()
            raise
        return connection

    async def _connect(
        self, address: Address, context: ssl.SSLContext | None, tenant: Hashable
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        hosts = [address.host]
        if not _is_number(address.host):
            hosts = await self._threads.names.run(tenant, address, partial(_resolve, address))
        failure = OSError("the name has no address")
        for host in hosts:
            try:
                return await asyncio.open_connection(
                    host, address.port, ssl=context, server_hostname=address.host if context else None
                )
            except ssl.SSLCertVerificationError:
                raise
            except OSError as error:
                failure = error
        raise failure

    async def _sasl(self, tenant: Hashable) -> Sasl | BearerToken | None:
        sasl = self.settings.sasl
        if not isinstance(sasl, ClientCredentials):
            return sasl
        if self._tokens is None:
            context = await self._threads.certificates.run(
                tenant, self._token_servers_key, partial(_context, Tls(trusted=sasl.trusted))
            )
            self._tokens = self._token_source(sasl, context)
        return await self._tokens.token(tenant)

    def _token_source(self, credentials: ClientCredentials, context: ssl.SSLContext) -> TokenSource:
        """Give the one that another request has made meanwhile, or a new one: two would ask for two tokens."""
        return self._tokens or TokenSource(credentials, context, self._threads.names)

    async def _tls_context(self, tenant: Hashable) -> ssl.SSLContext | None:
        tls = self.settings.tls
        if tls is not None and self._context is None:
            self._context = await self._threads.certificates.run(tenant, self._brokers_key, partial(_context, tls))
        return self._context


def _is_number(host: str) -> bool:
    """Whether it is an address, and no name that must be looked up."""
    try:
        return not isinstance(ipaddress.ip_address(host), ipaddress.IPv6Address) or "%" not in host
    except ValueError:
        return False


def _resolve(address: Address) -> list[str]:
    infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for _, _, _, _, sockaddr in infos))


def _context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=tls.trusted)
        context.check_hostname = tls.verify_host
        if tls.certificate_chain is not None and tls.key is not None:
            _load_own_certificate(context, tls.certificate_chain, tls.key, tls.key_password)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidSettingsError(
            "client properties", f"a certificate or key cannot be used: {error}", "check the PEM text of ssl.*"
        ) from error
    return context


def _load_own_certificate(context: ssl.SSLContext, chain: str, key: str, password: str | None) -> None:
    # The ssl module takes a client's key from a file only. Without a password it must not ask on a terminal.
    with tempfile.TemporaryDirectory(prefix="streamapp-") as folder:
        certificate = Path(folder, "client.pem")
        certificate.touch(mode=0o600)
        certificate.write_text(f"{key}\n{chain}\n")
        context.load_cert_chain(certificate, password=lambda: password or "")


def _unreachable(address: Address, why: str, next_step: str) -> BrokerUnreachableError:
    return BrokerUnreachableError(f"broker {address}", why, next_step)
