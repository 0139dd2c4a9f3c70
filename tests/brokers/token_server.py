"""A token server on the loopback address: client credentials in, signed tokens out, as RFC 6749 and 7519 say.

It stands for Keycloak and its like, which are too large to start in a test: it checks the client's secret, signs with
RS256, and serves its public keys, which the real broker fetches and checks every token with.
"""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

AUDIENCE = "kafka"


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class TokenServer:
    """What it knows, and what it was asked."""

    clients: dict[str, str] = field(default_factory=dict)
    """Secrets by client ID."""
    lifetime_seconds: int = 3600
    audience: str = AUDIENCE
    status: int | None = None
    """Answered to every request for a token, if set."""
    port: int = 0
    scopes: list[str | None] = field(default_factory=list)
    """Of the requests that got a token."""
    refusals: int = 0
    _key: rsa.RSAPrivateKey = field(default_factory=_key)

    def url(self, scheme: str = "http") -> str:
        """Where clients get tokens."""
        return f"{scheme}://127.0.0.1:{self.port}/token"

    @property
    def keys_url(self) -> str:
        """Where brokers get keys."""
        return f"http://127.0.0.1:{self.port}/keys"

    def answer(self, path: str, authorization: str, body: str) -> tuple[int, dict[str, Any]]:
        """Answer one request."""
        if path == "/keys":
            return 200, {"keys": [self._public_key()]}
        if self.status is not None:
            return self.status, {"error": "server_error"}
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        asked = {name: values[0] for name, values in parse_qs(body).items()}
        if asked.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        if self.clients.get(client) != secret:
            self.refusals += 1
            return 401, {"error": "invalid_client", "error_description": f"no {secret}"}
        self.scopes.append(asked.get("scope"))
        return 200, {"access_token": self._token(client), "token_type": "Bearer", "expires_in": self.lifetime_seconds}

    def _token(self, client: str) -> str:
        now = int(time.time())
        claims = {
            "iss": "tests",
            "sub": client,
            "aud": self.audience,
            "iat": now,
            "exp": now + self.lifetime_seconds,
            "scope": ["kafka"],
        }
        signed = f"{_encoded({'alg': 'RS256', 'typ': 'JWT', 'kid': 'one'})}.{_encoded(claims)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"

    def _public_key(self) -> dict[str, str]:
        numbers = self._key.public_key().public_numbers()
        modulus, exponent = (
            _base64(number.to_bytes((number.bit_length() + 7) // 8)) for number in (numbers.n, numbers.e)
        )
        return {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one", "n": modulus, "e": exponent}

    @contextmanager
    def running(self, tls: ssl.SSLContext | None = None) -> Iterator["TokenServer"]:
        """Serve for the time of the block; also over TLS, at another port then."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        before, self.port = self.port, server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
            self.port = before


def _handler(server: TokenServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

        def _answer(self, body: str) -> None:
            status, answer = server.answer(self.path, self.headers.get("Authorization", ""), body)
            raw = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _encoded(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value).encode())


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
