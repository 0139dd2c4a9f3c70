"""Spring Authorization Server on the loopback address: an issuer of tokens that the project did not write.

`tests.brokers.token_server` stays for what a sound server never does. This one judges the operator's requests by the
standards, and real brokers judge its tokens. It has no settings but an `application.yml`: issuer, keys and form of its
answers are its own defaults.
"""

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from lab.build import bases, maven
from lab.build.cache import Cache
from lab.matrix.processes import LOOPBACK, Process, free_ports, started
from lab.settings import Settings
from tests.brokers.certificates import Authority

PROJECT = Path(__file__).parent
MAIN = "dev.streamapp.tests.tokens.AuthorizationServer"
TOKENS, KEYS = "/oauth2/token", "/oauth2/jwks"
START_SECONDS = 90.0
_ACCESS_LOG = "access.log"


@dataclass(frozen=True)
class Client:
    """A client that the server knows; its name is the subject and the audience of its tokens."""

    secret: str
    lifetime_seconds: int = 300
    scopes: tuple[str, ...] = ("kafka",)
    method: str = "client_secret_basic"
    """How it shows its secret."""
    grant: str = "client_credentials"


@dataclass(frozen=True)
class AuthorizationServer:
    """One that answers."""

    port: int
    authority: Authority
    """Of its certificate, which is for `127.0.0.1` and for `localhost`."""
    process: Process
    folder: Path

    def url(self, host: str = LOOPBACK) -> str:
        """Where clients get tokens."""
        return f"{self.issuer(host)}{TOKENS}"

    @property
    def keys_url(self) -> str:
        """Where brokers get keys."""
        return f"{self.issuer()}{KEYS}"

    def issuer(self, host: str = LOOPBACK) -> str:
        """Who a token says has issued it: the server as the client called it."""
        return f"https://{host}:{self.port}"

    def statuses(self) -> list[int]:
        """Give the status of each answer to a request for a token, from the server's own log."""
        asked = [line.split() for line in (self.folder / _ACCESS_LOG).read_text().splitlines()]
        return [int(status) for path, status in asked if path == TOKENS]


@contextmanager
def running(folder: Path, clients: Mapping[str, Client]) -> Iterator[AuthorizationServer]:
    """Start it with these clients; it answers when the block begins, and ends with it."""
    settings = Settings.from_environment()
    cache = Cache(settings.cache)
    jars, java = maven.package(PROJECT, settings.versions, cache), bases.java_runtime(settings.versions, cache)
    authority, (port,) = Authority("tokens"), free_ports(1)
    issued = authority.issue("authorization-server", (LOOPBACK, "localhost"))
    (folder / "server.pem").write_text(issued.chain)
    (folder / "server.key").write_text(issued.key)
    (folder / "application.yml").write_text(yaml.safe_dump(_configuration(folder, port, clients)))
    run = [str(java / "bin" / "java"), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx192m"]
    run += ["-cp", f"{jars}/*:{jars}/lib/*", MAIN]
    with started("authorization server", run, {}, folder / "log", folder) as process:
        server = AuthorizationServer(port, authority, process, folder)
        _wait(server)
        yield server


def _configuration(folder: Path, port: int, clients: Mapping[str, Client]) -> Mapping[str, object]:
    bundle = {"certificate": "file:server.pem", "private-key": "file:server.key"}
    log = {"enabled": True, "buffered": False, "pattern": "%U %s", "rotate": False}
    place = {"directory": str(folder), "prefix": _ACCESS_LOG, "suffix": ""}
    return {
        "server": {
            "address": LOOPBACK,
            "port": port,
            "ssl": {"bundle": "server"},
            "tomcat": {"accesslog": {**log, **place}},
        },
        "spring": {
            "main": {"banner-mode": "off"},
            "ssl": {"bundle": {"pem": {"server": {"keystore": bundle}}}},
            "security": {
                "oauth2": {
                    "authorizationserver": {"client": {name: _registration(name, one) for name, one in clients.items()}}
                }
            },
        },
    }


def _registration(name: str, client: Client) -> Mapping[str, object]:
    return {
        "registration": {
            "client-id": name,
            "client-secret": f"{{noop}}{client.secret}",
            "client-authentication-methods": [client.method],
            "authorization-grant-types": [client.grant],
            "redirect-uris": ["https://127.0.0.1/never"],
            "scopes": list(client.scopes),
        },
        "token": {"access-token-time-to-live": f"{client.lifetime_seconds}s"},
    }


def _wait(server: AuthorizationServer) -> None:
    context = ssl.create_default_context(cadata=server.authority.pem)
    until = time.monotonic() + START_SECONDS
    while True:
        server.process.require_life()
        try:
            with urllib.request.urlopen(server.keys_url, context=context, timeout=5):  # noqa: S310 - our own address
                return
        except urllib.error.HTTPError:
            raise  # It runs, and has no keys.
        except OSError:
            assert time.monotonic() < until, server.process.last_words()
            time.sleep(0.1)
