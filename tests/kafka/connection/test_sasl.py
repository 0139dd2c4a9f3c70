"""The words of PLAIN and SCRAM; the exchange of RFC 7677 byte for byte."""

import pytest

from streamapp.kafka.connection.sasl import SaslError, exchange
from streamapp.kafka.connection.settings import Sasl
from streamapp.kafka.connection.tokens import BearerToken

NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PENCIL = Sasl("SCRAM-SHA-256", "user", "pencil")


def test_plain_says_name_and_password_once() -> None:
    steps = exchange(Sasl("PLAIN", "reader", "pässword"))
    assert next(steps) == "\0reader\0pässword".encode()
    with pytest.raises(StopIteration):
        steps.send(b"")


def test_the_exchange_of_the_standard() -> None:
    steps = exchange(PENCIL, NONCE)
    assert next(steps) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert steps.send(CHALLENGE) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    with pytest.raises(StopIteration):
        steps.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_name_with_the_signs_of_the_syntax_is_escaped() -> None:
    assert next(exchange(Sasl("SCRAM-SHA-512", "a,b=c", "x"), "n")) == b"n,,n=a=2Cb=3Dc,r=n"


def test_every_exchange_has_a_nonce_of_its_own() -> None:
    assert len({next(exchange(PENCIL)) for _ in range(20)}) == 20


def test_a_token_is_sent_once_with_its_extensions() -> None:
    steps = exchange(BearerToken("abc", (("logicalCluster", "lkc"),)))
    assert next(steps) == b"n,,\x01auth=Bearer abc\x01logicalCluster=lkc\x01\x01"
    with pytest.raises(StopIteration):
        steps.send(b"")


def test_a_refused_token_is_acknowledged_before_it_is_reported() -> None:
    steps = exchange(BearerToken("abc"))
    next(steps)
    assert steps.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslError, match="invalid_token"):
        steps.send(b"")


CHALLENGES: dict[str, tuple[bytes, str]] = {
    "a foreign nonce": (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "a foreign nonce"),
    "a salt that is no base64": (b"r=" + NONCE.encode() + b"x,s=%%,i=4096", "not base64"),
    "more iterations than anybody needs": (CHALLENGE.replace(b"4096", b"65537"), "asks for '65537' iterations"),
    "a number that would take for ever to read": (CHALLENGE.replace(b"4096", b"9" * 5000), "iterations"),
    "no iterations": (CHALLENGE.replace(b"4096", b"0"), "asks for '0' iterations"),
    "so few that the password can be guessed": (CHALLENGE.replace(b"4096", b"4095"), "'4095' iterations, not 4096 to"),
    "no salt": (CHALLENGE.replace(b"W22ZaJ0SNY7soEsUEjb6gQ==", b""), "sends no salt"),
    "nothing of its own in the nonce": (b"r=" + NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "adds nothing"),
    "bytes that are no text": (b"\xff\xfe", "no text"),
    "nothing": (b"", "asks for '' iterations"),
}


@pytest.mark.parametrize(("challenge", "why"), CHALLENGES.values(), ids=CHALLENGES.keys())
def test_a_challenge_that_no_broker_sends_ends_the_exchange(challenge: bytes, why: str) -> None:
    steps = exchange(PENCIL, NONCE)
    next(steps)
    with pytest.raises(SaslError, match=why):
        steps.send(challenge)


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        (b"v=AAAA", "cannot prove that it knows the password"),
        (b"", "cannot prove that it knows the password"),
        (b"e=invalid-proof", "the broker says invalid-proof"),
    ],
    ids=["a wrong proof", "no proof", "a refusal"],
)
def test_a_broker_that_does_not_know_the_password_is_found_out(verdict: bytes, why: str) -> None:
    steps = exchange(PENCIL, NONCE)
    next(steps)
    steps.send(CHALLENGE)
    with pytest.raises(SaslError, match=why):
        steps.send(verdict)
