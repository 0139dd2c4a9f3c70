"""Client properties under Java names: what is translated, what is refused, what is left aside."""

import pytest

from streamapp.kafka.connection.errors import InvalidSettingsError
from streamapp.kafka.connection.settings import Address, ClientCredentials, KafkaSettings, Sasl, Tls, read_settings

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="reader" password="s3cret";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required username='a,b=c' password='it\\'s \"q\"' ;"


def refusal(properties: dict[str, str], servers: str = "kafka:9092") -> InvalidSettingsError:
    with pytest.raises(InvalidSettingsError) as caught:
        read_settings(servers, properties)
    return caught.value


def test_no_properties_mean_a_plain_connection() -> None:
    assert read_settings("kafka:9092", {}) == KafkaSettings((Address("kafka", 9092),))


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("kafka.kafka.svc:9092", [("kafka.kafka.svc", 9092)]),
        (" a:1 ,, b:65535 ", [("a", 1), ("b", 65535)]),
        ("SASL_SSL://broker:9093", [("broker", 9093)]),
        ("[fd00::1]:9092", [("fd00::1", 9092)]),
    ],
)
def test_bootstrap_servers_are_hosts_and_ports(servers: str, addresses: list[tuple[str, int]]) -> None:
    settings = read_settings(servers, {})
    assert settings.bootstrap == tuple(Address(*each) for each in addresses)


def test_an_address_is_printed_as_it_is_written() -> None:
    assert str(read_settings("[fd00::1]:9092,a:1", {})) == "[fd00::1]:9092,a:1"


@pytest.mark.parametrize(
    "servers", ["", " , ", "kafka", "kafka:0", "kafka:65536", "kafka:port", "a b:1", "fd00::1:9092"]
)
def test_bootstrap_servers_that_are_none_are_named(servers: str) -> None:
    assert "bootstrapServers" in refusal({}, servers).why


def test_sasl_over_tls_with_certificates_as_text() -> None:
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": SCRAM,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert read_settings("kafka:9092", properties) == KafkaSettings(
        bootstrap=(Address("kafka", 9092),),
        tls=Tls(trusted="CA", verify_host=False),
        sasl=Sasl("SCRAM-SHA-512", "a,b=c", 'it\'s "q"'),
    )


def test_mutual_tls() -> None:
    properties = {
        "security.protocol": "ssl",
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "KEY",
        "ssl.key.password": "s3cret",
    }
    assert read_settings("kafka:9092", properties).tls == Tls(None, "CHAIN", "KEY", "s3cret")


def test_plain_over_an_open_connection() -> None:
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}
    assert read_settings("kafka:9092", properties).sasl == Sasl("PLAIN", "reader", "s3cret")


def test_what_has_no_meaning_for_reading_is_ignored_by_name() -> None:
    properties = {"acks": "all", "client.id": "mine", "ssl.enabled.protocols": "TLSv1.3", "max.poll.records": "1"}
    settings = read_settings("kafka:9092", properties)
    assert settings.ignored == ("acks", "client.id", "max.poll.records", "ssl.enabled.protocols")
    assert settings == read_settings("kafka:9092", {})


def test_every_security_property_that_cannot_be_honoured_is_named() -> None:
    refused = refusal(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": "/etc/passwd",
            "ssl.keystore.location": "/mnt/keys.jks",
            "sasl.client.callback.handler.class": "evil.Class",
            "acks": "all",
        }
    )
    assert refused.why == (
        "sasl.client.callback.handler.class, ssl.keystore.location, ssl.truststore.location cannot be honoured"
    )
    assert "ssl.truststore.certificates" in refused.next_step


def test_a_property_of_the_client_library_itself_never_passes() -> None:
    """The settings have no place for it, so nothing that reads them can load a plugin."""
    settings = read_settings("kafka:9092", {"plugin.library.paths": "/tmp/evil.so"})
    assert settings == read_settings("kafka:9092", {})
    assert settings.ignored == ("plugin.library.paths",)


BEARER = "a.OAuthBearerLoginModule required"
TOKENS = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://tokens.example/oauth/token",
    "sasl.jaas.config": f'{BEARER} clientId="me" clientSecret="s3cret" scope="kafka" extension_logicalCluster="lkc";',
}


def test_client_credentials_as_javas_client_has_them() -> None:
    expected = ClientCredentials(
        "https://tokens.example/oauth/token", "me", "s3cret", "kafka", extensions=(("logicalCluster", "lkc"),)
    )
    assert read_settings("kafka:9092", TOKENS).sasl == expected
    assert expected.address == Address("tokens.example", 443)


def test_client_credentials_as_properties_of_kafka_4() -> None:
    properties = {
        **TOKENS,
        "sasl.jaas.config": f"{BEARER};",
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "s3cret",
        "sasl.oauthbearer.scope": "all",
        "sasl.oauthbearer.header.urlencode": "true",
        "sasl.oauthbearer.token.endpoint.url": "http://[fd00::1]/token",
    }
    found = read_settings("kafka:9092", properties).sasl
    assert found == ClientCredentials("http://[fd00::1]/token", "me", "s3cret", "all", urlencodes_header=True)
    assert isinstance(found, ClientCredentials)
    assert found.address == Address("fd00::1", 80)


def test_values_are_trimmed_as_java_trims_them() -> None:
    properties = {
        "security.protocol": " SSL\n",
        "ssl.keystore.certificate.chain": "CHAIN\n",
        "ssl.keystore.key": "KEY\n",
        "ssl.key.password": "s3cret\n",
    }
    assert read_settings("kafka:9092", properties).tls == Tls(None, "CHAIN", "KEY", "s3cret")


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "an unknown protocol": ({"security.protocol": "TLS"}, "security.protocol is 'TLS'"),
    "the default mechanism of Java": (
        {"security.protocol": "SASL_SSL", "sasl.jaas.config": PLAIN},
        "sasl.mechanism GSSAPI is not supported",
    ),
    "a mechanism with tickets": (
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
        "sasl.mechanism GSSAPI is not supported",
    ),
    "the mechanism of one cloud": (
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"},
        "sasl.mechanism AWS_MSK_IAM is not supported",
    ),
    "no login": (
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
        "sasl.jaas.config cannot be read",
    ),
    "the login module of another mechanism": (
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": SCRAM},
        "sasl.jaas.config cannot be read",
    ),
    "a login without its semicolon": (
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN.rstrip(";")},
        "sasl.jaas.config cannot be read",
    ),
    "a login without a password": (
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": 'a.PlainLoginModule required username="reader";',
        },
        "sasl.jaas.config names no username and password",
    ),
    "a binary store": (
        {"security.protocol": "SSL", "ssl.truststore.type": "JKS"},
        "ssl.truststore.type is 'JKS'",
    ),
    "a login without a protocol": (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN},
        "security.protocol is missing, so sasl.jaas.config, sasl.mechanism would have no effect",
    ),
    "certificates without a protocol": (
        {"ssl.truststore.certificates": "CA"},
        "security.protocol is missing, so ssl.truststore.certificates would have no effect",
    ),
    "a login with a protocol that has none": (
        {"security.protocol": "SSL", "sasl.jaas.config": PLAIN},
        "security.protocol is SSL, so sasl.jaas.config would have no effect",
    ),
    "certificates with a protocol that has none": (
        {"security.protocol": "SASL_PLAINTEXT", "ssl.keystore.key": "KEY"},
        "security.protocol is SASL_PLAINTEXT, so ssl.keystore.key would have no effect",
    ),
    "a class of one's own for tokens": (
        {**TOKENS, "sasl.login.callback.handler.class": "evil.Class"},
        "sasl.login.callback.handler.class cannot be honoured",
    ),
    "a token from a file": (
        {**TOKENS, "sasl.oauthbearer.token.endpoint.url": "file:///var/run/secrets/token"},
        "sasl.oauthbearer.token.endpoint.url is no URL of a server",
    ),
    "a token server with credentials in its URL": (
        {**TOKENS, "sasl.oauthbearer.token.endpoint.url": "https://me:s3cret@tokens/token"},
        "sasl.oauthbearer.token.endpoint.url is no URL of a server",
    ),
    "a token's client without its secret": (
        {**TOKENS, "sasl.jaas.config": f'{BEARER} clientId="me";'},
        "sasl.jaas.config names no clientId and clientSecret",
    ),
    "an extension that would be another credential": (
        {**TOKENS, "sasl.jaas.config": f'{BEARER} clientId="me" clientSecret="s3cret" extension_auth="Bearer x";'},
        "sasl.jaas.config has extensions that RFC 7628 has not: auth",
    ),
    "a certificate without its key": (
        {"security.protocol": "SSL", "ssl.keystore.certificate.chain": "CHAIN"},
        "one of ssl.keystore.certificate.chain and ssl.keystore.key is missing",
    ),
    "an unknown way to identify the broker": (
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldaps"},
        "ssl.endpoint.identification.algorithm is 'ldaps'",
    ),
}


@pytest.mark.parametrize(("properties", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_settings_that_cannot_work_are_refused_with_the_way_out(properties: dict[str, str], why: str) -> None:
    refused = refusal(properties)
    assert (refused.why, bool(refused.next_step)) == (why, True)


def test_secrets_are_never_printed() -> None:
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": PLAIN,
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "PRIVATE",
        "ssl.key.password": "s3cret",
    }
    shown = repr(read_settings("kafka:9092", properties))
    assert "s3cret" not in shown
    assert "PRIVATE" not in shown


def test_secrets_are_never_part_of_a_refusal() -> None:
    for properties, _ in REFUSED.values():
        assert "s3cret" not in str(refusal(properties))


def test_a_login_that_takes_long_to_read_is_refused_for_its_length() -> None:
    properties = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    with pytest.raises(InvalidSettingsError, match="has 20000 characters, at most 16384 are read"):
        read_settings("a:1", {**properties, "sasl.jaas.config": "a" * 20_000})


def test_a_value_of_a_megabyte_makes_a_short_error() -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        read_settings("a:1", {"security.protocol": "x" * 1_000_000})
    assert len(str(caught.value)) < 1_000
