"""Opens connections to brokers of one cluster: name resolution, TCP, TLS, authentication.

Used by `pool`. What blocks (the resolver, reading certificates) runs in the executor that the owner gives, one
per cluster, so that a dead name server never holds the threads of another application.
"""

import asyncio
import socket
import ssl
import tempfile
from concurrent.futures import Executor
from pathlib import Path

from streamapp.kafka.connection.answer_limits import DEFAULT_LIMITS, AnswerLimits
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


class Connector:
    """Knows the settings of one cluster and opens connections with them."""

    def __init__(self, settings: KafkaSettings, executor: Executor, limits: AnswerLimits = DEFAULT_LIMITS) -> None:
        self.settings = settings
        self._limits = limits
        self._executor = executor
        self._context: ssl.SSLContext | None = None
        self._tokens: TokenSource | None = None

    async def connect(self, address: Address, client_id: str) -> Connection:
        """Open an authenticated connection; the errors of a connection, or InvalidSettingsError."""
        check_allowed(address, self.settings.allowed)  # brokers name others in their answers
        context, sasl = await self._tls_context(), await self._sasl()
        try:
            reader, writer = await self._connect(address, context)
        except ssl.SSLCertVerificationError as error:
            raise _unreachable(
                address, f"its certificate is not trusted: {error.verify_message}", "check ssl.truststore.certificates"
            ) from error
        except (OSError, UnicodeError) as error:
            if isinstance(error, ssl.SSLError) and (refusal := certificate_refusal(error)) is not None:
                raise certificate_refused(address, refusal) from error
            advice = "check bootstrapServers, security.protocol, network policies and the brokers"
            raise _unreachable(address, cause(error), advice) from error
        connection = Connection(address, client_id, reader, writer, self._limits)
        try:
            await connection.introduce(sasl)
        except BaseException as error:
            connection.close()
            if isinstance(error, NotAuthenticatedError) and self._tokens is not None:
                self._tokens.forget()
            raise
        return connection

    async def _connect(
        self, address: Address, context: ssl.SSLContext | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        hosts = await loop.run_in_executor(self._executor, _resolve, address)
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

    async def _sasl(self) -> Sasl | BearerToken | None:
        sasl = self.settings.sasl
        if not isinstance(sasl, ClientCredentials):
            return sasl
        if self._tokens is None:
            loop = asyncio.get_running_loop()
            context = await loop.run_in_executor(self._executor, _context, Tls(trusted=sasl.trusted))
            self._tokens = TokenSource(sasl, context, self._executor)
        return await self._tokens.token()

    async def _tls_context(self) -> ssl.SSLContext | None:
        if self.settings.tls is None:
            return None
        if self._context is None:
            loop = asyncio.get_running_loop()
            self._context = await loop.run_in_executor(self._executor, _context, self.settings.tls)
        return self._context


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
