"""Metrics over TLS: real handshakes, a certificate that changes, and files that are missing or broken."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.typing import EventDict

from streamapp.controller.http.certificate import LOOK_SECONDS, ServedCertificate
from streamapp.controller.http.probes import Health, serve, serve_metrics
from streamapp.controller.metrics import Metrics
from tests.brokers.certificates import Authority, Issued

FIRST, SECOND = Authority("first"), Authority("second")


def mount(volume: Path, version: str, certificate: str, key: str) -> None:
    """Write both files as a kubelet does: a folder for each version, and a link that is replaced at once."""
    folder = volume / f"..{version}"
    folder.mkdir()
    (folder / "tls.crt").write_text(certificate)
    (folder / "tls.key").write_text(key)
    link = volume / "..data_tmp"
    link.symlink_to(folder.name)
    link.replace(volume / "..data")


def issued(authority: Authority) -> Issued:
    return authority.issue("operator", ("localhost",))


class Served:
    """The two servers of an operator with a certificate, in time that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.folder = folder
        self.certificate = ServedCertificate(folder, lambda: self.now)
        self.ports: list[int] = []

    async def metrics(self, authority: Authority, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> str:
        """What a client that trusts the authority gets; or the class of its error."""
        self.now += LOOK_SECONDS
        context = ssl.create_default_context(cadata=authority.pem)
        context.minimum_version = context.maximum_version = version
        async with aiohttp.ClientSession() as session:
            try:
                async with session.get(
                    f"https://127.0.0.1:{self.ports[1]}/metrics", ssl=context, server_hostname="localhost"
                ) as answer:
                    return (await answer.text())[:6] if answer.status == 200 else str(answer.status)
            except aiohttp.ClientConnectorError as error:
                return type(error).__name__

    async def status(self, path: str, port: int) -> int:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Served]:
    both, health, metrics = Served(folder), Health(lambda: 0.0, 1, 1), Metrics()
    runners = [
        await serve(0, health, metrics, shows_metrics=False),
        await serve_metrics(0, health, metrics, both.certificate.context()),
    ]
    both.ports = [next(address[1] for address in runner.addresses if len(address) == 2) for runner in runners]
    try:
        yield both
    finally:
        for runner in runners:
            await runner.cleanup()


def play(folder: Path, story: Callable[[Served], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with served(folder) as both:
            await story(both)

    asyncio.run(run())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_metrics_are_served_over_tls_and_probes_as_before(tmp_path: Path, version: ssl.TLSVersion) -> None:
    mount(tmp_path, "1", (one := issued(FIRST)).chain, one.key)

    async def story(both: Served) -> None:
        assert await both.metrics(FIRST, version) == "# HELP"
        assert await both.metrics(SECOND, version) == "ClientConnectorCertificateError"
        assert await both.status("/metrics", both.ports[0]) == 404
        assert await both.status("/healthz", both.ports[0]) == 200
        with pytest.raises(aiohttp.ClientError):
            await both.status("/metrics", both.ports[1])

    play(tmp_path, story)


def test_a_new_certificate_is_presented_without_a_restart(tmp_path: Path) -> None:
    mount(tmp_path, "1", (one := issued(FIRST)).chain, one.key)

    async def story(both: Served) -> None:
        assert await both.metrics(FIRST) == "# HELP"
        mount(tmp_path, "2", (other := issued(SECOND)).chain, other.key)
        assert await both.metrics(SECOND) == "# HELP"
        assert await both.metrics(FIRST) == "ClientConnectorCertificateError"

    play(tmp_path, story)


def test_broken_files_leave_the_certificate_of_before_and_are_logged_once(
    tmp_path: Path, log_lines: list[EventDict]
) -> None:
    one, other = issued(FIRST), issued(SECOND)
    mount(tmp_path, "1", one.chain, one.key)

    async def story(both: Served) -> None:
        mount(tmp_path, "2", other.chain, one.key)
        assert [await both.metrics(FIRST) for _ in range(2)] == ["# HELP", "# HELP"]
        mount(tmp_path, "3", other.chain, other.key)
        assert await both.metrics(SECOND) == "# HELP"

    play(tmp_path, story)
    assert [line["event"] for line in log_lines if "certificate" in line["event"]] == [
        "certificate of metrics cannot be used",
        "certificate of metrics read",
    ]


def test_without_files_the_probes_answer_and_metrics_come_with_the_files(tmp_path: Path) -> None:
    async def story(both: Served) -> None:
        assert await both.metrics(FIRST) in {"ClientConnectorSSLError", "ClientConnectorError"}
        assert await both.status("/readyz", both.ports[0]) == 503
        mount(tmp_path, "1", (one := issued(FIRST)).chain, one.key)
        assert await both.metrics(FIRST) == "# HELP"

    play(tmp_path, story)
