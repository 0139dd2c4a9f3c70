"""What a client sends to authenticate, as bytes in and bytes out: PLAIN (RFC 4616), SCRAM (5802), OAUTHBEARER (7628).

Used by `connection`, which carries the messages.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Generator

from streamapp.kafka.connection.settings import Sasl
from streamapp.kafka.connection.tokens import BearerToken

MIN_ITERATIONS = 4_096
"""Kafka's own least. Fewer make it cheap to guess the password from a proof that a wrong server asked for."""
MAX_ITERATIONS = 65_536
"""Kafka's own limit is 16,384. Without a limit, a wrong server on the broker's port could block the event loop."""

Exchange = Generator[bytes, bytes, None]
"""Yields what to send, is sent what the broker answered, ends when both sides are content."""


class SaslError(Exception):
    """The other side is not the broker that knows our password, or talks nonsense."""


def exchange(sasl: Sasl | BearerToken, nonce: str | None = None) -> Exchange:
    """Start an authentication; `nonce` is random unless a test vector fixes it."""
    if isinstance(sasl, BearerToken):
        return _bearer(sasl)
    if sasl.mechanism == "PLAIN":
        return _plain(sasl)
    return _scram(sasl, nonce or secrets.token_urlsafe(24))


def _plain(sasl: Sasl) -> Exchange:
    yield b"\0" + sasl.username.encode() + b"\0" + sasl.password.encode()


def _bearer(token: BearerToken) -> Exchange:
    parts = [f"auth=Bearer {token.text}", *(f"{name}={value}" for name, value in token.extensions)]
    refusal = yield "".join(["n,,\x01", *(f"{part}\x01" for part in parts), "\x01"]).encode()
    if refusal:
        # The broker fails the authentication only after this byte, and says why then.
        yield b"\x01"
        raise SaslError(f"the broker refuses the token: {refusal.decode(errors='replace')}")


def _scram(sasl: Sasl, nonce: str) -> Exchange:
    algorithm = "sha256" if sasl.mechanism.endswith("256") else "sha512"
    name = sasl.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    challenge = yield f"n,,{first}".encode()
    fields = _fields(challenge)
    server_nonce, salt, iterations = fields.get("r", ""), _decoded(fields.get("s", "")), _iterations(fields)
    if not server_nonce.startswith(nonce) or server_nonce == nonce:
        raise SaslError("the broker answers with a foreign nonce, or adds nothing to ours")
    if not salt:
        raise SaslError("the broker sends no salt")
    salted = hashlib.pbkdf2_hmac(algorithm, sasl.password.encode(), salt, iterations)
    final = f"c=biws,r={server_nonce}"
    signed = f"{first},{challenge.decode()},{final}".encode()
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), signed, algorithm)
    proof = bytes(key ^ mark for key, mark in zip(client_key, signature, strict=True))
    verdict = yield f"{final},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), signed, algorithm)
    answer = _fields(verdict)
    if "e" in answer:
        raise SaslError(f"the broker says {answer['e']}")
    if not hmac.compare_digest(_decoded(answer.get("v", "")), expected):
        raise SaslError("the broker cannot prove that it knows the password")


def _fields(message: bytes) -> dict[str, str]:
    try:
        pairs = (part.partition("=") for part in message.decode().split(","))
    except UnicodeDecodeError as error:
        raise SaslError("the broker's message is no text") from error
    return {name: value for name, _, value in pairs}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise SaslError("the broker's message is not base64") from error


def _iterations(fields: dict[str, str]) -> int:
    text = fields.get("i", "")
    if not (text.isascii() and text.isdigit() and len(text) < 9 and MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS):
        raise SaslError(f"the broker asks for {text[:9]!r} iterations, not {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return int(text)
