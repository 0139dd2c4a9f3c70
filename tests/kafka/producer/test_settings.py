"""What librdkafka is given for each way to authenticate, and what it never gets from a Secret."""

import pytest

from streamapp.kafka.connection.errors import InvalidSettingsError
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.producer.frames import (
    Failure,
    Message,
    Setup,
    decode_answer,
    decode_batch,
    decode_setup,
    encode_answer,
    encode_batch,
    encode_setup,
)
from streamapp.kafka.producer.librdkafka import _WRITING, client_properties, secrets_of

MODULES = "org.apache.kafka.common.security"
LOGIN = f'{MODULES}.scram.ScramLoginModule required username="flights" password="s3cret";'
TLS = {
    "ssl.truststore.certificates": "AUTHORITY",
    "ssl.keystore.certificate.chain": "CHAIN",
    "ssl.keystore.key": "BEGIN\nKEY LINE",
    "ssl.key.password": "unlock",
}
OAUTH = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
    "sasl.jaas.config": f'{MODULES}.oauthbearer.OAuthBearerLoginModule required clientId="flights" '
    'clientSecret="s3cret" scope="kafka" ssl.truststore.certificates="PEM" extension_logicalCluster="lkc" '
    'extension_pool="p";',
}

WAYS: dict[str, tuple[dict[str, str], dict[str, str], set[str]]] = {
    "nothing": ({}, {"security.protocol": "PLAINTEXT"}, set()),
    "mutual TLS": (
        {"security.protocol": "SSL", **TLS},
        {
            "security.protocol": "SSL",
            "ssl.ca.pem": "AUTHORITY",
            "ssl.certificate.pem": "CHAIN",
            "ssl.key.pem": "BEGIN\nKEY LINE",
            "ssl.key.password": "unlock",
            "ssl.endpoint.identification.algorithm": "https",
        },
        {"unlock", "BEGIN", "KEY LINE"},
    ),
    "SCRAM over TLS, any host": (
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": LOGIN,
            "ssl.endpoint.identification.algorithm": "",
        },
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "flights",
            "sasl.password": "s3cret",
            "ssl.endpoint.identification.algorithm": "none",
        },
        {"s3cret", ""},
    ),
    "a token": (
        OAUTH,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
            "sasl.oauthbearer.client.id": "flights",
            "sasl.oauthbearer.client.secret": "s3cret",
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.extensions": "logicalCluster=lkc,pool=p",
            "https.ca.pem": "PEM",
        },
        {"s3cret"},
    ),
}


@pytest.mark.parametrize(("given", "translated", "hidden"), WAYS.values(), ids=WAYS.keys())
def test_librdkafka_gets_what_a_secret_means_and_nothing_else(
    given: dict[str, str], translated: dict[str, str], hidden: set[str]
) -> None:
    settings = read_settings("a:9092,[::1]:9093", {**given, "linger.ms": "5", "metric.reporters": "x"})
    assert client_properties(settings) == {**_WRITING, "bootstrap.servers": "a:9092,[::1]:9093", **translated}
    assert set(secrets_of(settings)) == hidden


def test_lines_are_written_safely_and_in_their_old_partitions() -> None:
    safe = {"enable.idempotence": "true", "acks": "all", "partitioner": "consistent", "compression.type": "zstd"}
    assert {name: _WRITING[name] for name in safe} == safe


@pytest.mark.parametrize(
    "name",
    [
        "plugin.library.paths",
        "ssl.engine.location",
        "ssl.ca.location",
        "ssl.keystore.location",
        "sasl.kerberos.kinit.cmd",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.assertion.file",
        "debug",
    ],
)
def test_a_property_that_loads_code_or_reads_a_file_is_refused_or_has_no_meaning(name: str) -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": LOGIN, name: "x"}
    if name.startswith(("ssl.", "sasl.")):
        with pytest.raises(InvalidSettingsError, match=name):
            read_settings("a:1", given)
    else:
        assert name not in client_properties(read_settings("a:1", given))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"sasl.oauthbearer.header.urlencode": "true"}, "header.urlencode cannot be honoured"),
        ({"sasl.jaas.config": OAUTH["sasl.jaas.config"].replace('"p"', '"p,q"')}, "an extension with a comma"),
    ],
)
def test_what_librdkafka_cannot_do_is_refused_by_name(more: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidSettingsError, match=why):
        client_properties(read_settings("a:1", {**OAUTH, **more}))


def test_frames_are_read_as_they_were_written() -> None:
    setup = Setup({"sasl.password": 'ü"\\\n'}, "records", ("a:*",))
    assert decode_setup(encode_setup(setup)) == setup
    assert "sasl.password" not in repr(setup)
    batch = [Message(b"", b"{}"), Message(b"shop/orders", b"\x00" * 70_000), Message(b"k", b"")]
    assert decode_batch(encode_batch(batch)) == batch
    failures = [Failure("_MSG_TIMED_OUT", "why", (0, 2)), Failure("X", "", (1,))]
    assert decode_answer(encode_answer(failures)) == failures
