"""Client properties from Secrets as Strimzi, cert-manager and people write them."""

import pytest

from streamapp.kafka.connection.errors import InvalidSettingsError
from streamapp.kafka.secret_properties import SecretContent, client_properties

BINARY = b"0\x82\x0a\x00"


def put_together(*secrets: dict[str, bytes], **given: str) -> dict[str, str]:
    contents = [SecretContent(f"s{number}", data) for number, data in enumerate(secrets)]
    return dict(client_properties(contents, {name.replace("_", "."): value for name, value in given.items()}))


def test_properties_under_their_names_without_the_line_break_of_their_files() -> None:
    assert put_together({"security.protocol": b"SSL\n", "ssl.key.password": b"s3cret\n"}) == {
        "security.protocol": "SSL",
        "ssl.key.password": "s3cret",
    }


def test_a_user_and_a_cluster_of_strimzi() -> None:
    user = {"ca.crt": b"CLIENTS", "user.crt": b"CHAIN", "user.key": b"KEY", "user.p12": BINARY, "user.password": b"x"}
    cluster = {"ca.crt": b"NEW", "ca-2026-01-01T00-00-00Z.crt": b"OLD", "ca.p12": BINARY, "ca.password": b"y"}
    assert put_together(user, cluster, security_protocol="SSL") == {
        "security.protocol": "SSL",
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "KEY",
        "ssl.truststore.certificates": "OLD\nNEW",
        "user.password": "x",
        "ca.password": "y",
    }


def test_a_certificate_of_cert_manager_has_the_authority_beside_it() -> None:
    assert put_together({"tls.crt": b"CHAIN", "tls.key": b"KEY", "ca.crt": b"CA"}) == {
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "KEY",
        "ssl.truststore.certificates": "CA",
    }


def test_a_property_under_its_name_comes_before_a_file() -> None:
    found = put_together({"ca.crt": b"FILE", "ssl.truststore.certificates": b"NAMED"}, {"ca.crt": b"OTHER"})
    assert found["ssl.truststore.certificates"] == "NAMED"
    assert put_together({"user.key": b"FILE", "ssl.keystore.key": b"NAMED"}) == {"ssl.keystore.key": "NAMED"}


def test_a_store_that_nothing_reads_makes_nothing_unusable() -> None:
    known = {"acks": "all", "security.protocol": "SSL"}
    stores = {"user.p12": BINARY, "keystore.jks": BINARY}
    assert put_together(stores | {name: value.encode() for name, value in known.items()}) == known


@pytest.mark.parametrize("key", ["ssl.keystore.key", "ca.crt", "user.crt"])
def test_a_binary_value_where_text_is_needed_is_named(key: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        put_together({key: BINARY})
    assert str(caught.value) == f"secret s0: {key} is no text (write text; certificates and keys as PEM)"


@pytest.mark.parametrize(
    ("secrets", "why"),
    [
        (({"sasl.mechanism": b"PLAIN"}, {"sasl.mechanism": b"OAUTHBEARER"}), "in secret s0 and another in secret s1"),
        (({"security.protocol": b"SSL"},), "security.protocol has one value in the StreamApp and another in secret s0"),
    ],
)
def test_two_values_of_one_property_are_an_error(secrets: tuple[dict[str, bytes], ...], why: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        put_together(*secrets, security_protocol="SASL_SSL")
    assert why in str(caught.value)
    assert "OAUTHBEARER" not in str(caught.value)


def test_the_same_value_twice_is_no_error() -> None:
    same = {"security.protocol": b"SSL"}
    assert put_together(same, same) == {"security.protocol": "SSL"}


@pytest.mark.parametrize(
    ("secret", "keys"),
    [
        pytest.param({"client.properties": b"security.protocol=SASL_SSL"}, "client.properties", id="a whole file"),
        pytest.param({"SPRING_KAFKA_SECURITY_PROTOCOL": b"SSL"}, "SPRING_KAFKA_SECURITY_PROTOCOL", id="variables"),
        pytest.param({"user.p12": BINARY, "user.password": b"x"}, "user.p12, user.password", id="a store alone"),
        pytest.param(
            {"ca.crt": b"", "client.properties": b"a=b"}, "ca.crt, client.properties", id="an empty authority"
        ),
        pytest.param({}, "none", id="nothing"),
    ],
)
def test_secrets_that_say_nothing_are_an_error_and_no_connection_in_plain_text(
    secret: dict[str, bytes], keys: str
) -> None:
    with pytest.raises(InvalidSettingsError, match=f"no key says how to connect; there are {keys}"):
        put_together(secret)


def test_a_secret_with_other_properties_beside_one_that_says_how_to_connect_is_no_error() -> None:
    found = put_together({"security.protocol": b"SSL"}, {"request.timeout.ms": b"5000"})
    assert found == {"security.protocol": "SSL", "request.timeout.ms": "5000"}
