"""What librdkafka calls the settings of a client, and how the producer writes.

Called by `producer`. Only what `connection.settings` has read from a Secret is translated. So no property of a Secret
reaches librdkafka under its own name, where it could load a plugin, read a file or start another login.
"""

from collections.abc import Iterator, Mapping

from streamapp.kafka.connection.errors import InvalidSettingsError
from streamapp.kafka.connection.settings import ClientCredentials, KafkaSettings, Sasl, Tls

MESSAGE_SECONDS = 10.0
"""So long librdkafka tries to write a line. It then reports a failure, and the line is sent again."""

_WRITING: Mapping[str, str] = {
    "client.id": "streamapp-flight-record",
    "enable.idempotence": "true",
    "acks": "all",
    "compression.type": "zstd",
    # CRC-32 of the key: an application's lines stay in the partition that the first release wrote them to.
    "partitioner": "consistent",
    "linger.ms": "20",
    "message.timeout.ms": f"{MESSAGE_SECONDS * 1000:.0f}",
    # The broker judges: a topic can take larger lines than librdkafka's default.
    "message.max.bytes": "20000000",
    # One batch at a time is on its way, so these are never reached.
    "queue.buffering.max.kbytes": "32768",
    "queue.buffering.max.messages": "500000",
    "socket.timeout.ms": "10000",
    "socket.connection.setup.timeout.ms": "5000",
    "reconnect.backoff.max.ms": "2000",
    "allow.auto.create.topics": "false",
    "enable.metrics.push": "false",
    "log.connection.close": "false",
}


def client_properties(settings: KafkaSettings) -> Mapping[str, str]:
    """Translate; InvalidSettingsError for what librdkafka cannot do and the operator's own client can."""
    protocol = ("SASL_" if settings.sasl is not None else "") + ("SSL" if settings.tls is not None else "PLAINTEXT")
    return {
        **_WRITING,
        "bootstrap.servers": str(settings),
        "security.protocol": protocol,
        **(_of_tls(settings.tls) if settings.tls is not None else {}),
        **(_of_sasl(settings.sasl) if settings.sasl is not None else {}),
    }


def secrets_of(settings: KafkaSettings) -> Iterator[str]:
    """Give what no log may show."""
    if isinstance(settings.sasl, Sasl):
        yield settings.sasl.password
    if isinstance(settings.sasl, ClientCredentials):
        yield settings.sasl.secret
    if settings.tls is not None:
        yield settings.tls.key_password or ""
        yield from (settings.tls.key or "").splitlines()


def _of_tls(tls: Tls) -> Mapping[str, str]:
    found = {
        "ssl.ca.pem": tls.trusted,
        "ssl.certificate.pem": tls.certificate_chain,
        "ssl.key.pem": tls.key,
        "ssl.key.password": tls.key_password,
        "ssl.endpoint.identification.algorithm": "https" if tls.verify_host else "none",
    }
    return {name: value for name, value in found.items() if value is not None}


def _of_sasl(sasl: Sasl | ClientCredentials) -> Mapping[str, str]:
    if isinstance(sasl, Sasl):
        return {"sasl.mechanism": sasl.mechanism, "sasl.username": sasl.username, "sasl.password": sasl.password}
    if sasl.urlencodes_header:
        raise InvalidSettingsError(
            "client properties",
            "sasl.oauthbearer.header.urlencode cannot be honoured for the flight record",
            "leave it out, and use a client ID and a client secret that URL encoding does not change",
        )
    if any("," in value for _, value in sasl.extensions):
        raise InvalidSettingsError(
            "client properties", "an extension with a comma cannot be honoured for the flight record", "leave it out"
        )
    found = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": sasl.token_endpoint,
        "sasl.oauthbearer.client.id": sasl.client_id,
        "sasl.oauthbearer.client.secret": sasl.secret,
        "sasl.oauthbearer.scope": sasl.scope,
        "sasl.oauthbearer.extensions": ",".join(f"{name}={value}" for name, value in sasl.extensions) or None,
        "https.ca.pem": sasl.trusted,
    }
    return {name: value for name, value in found.items() if value is not None}
