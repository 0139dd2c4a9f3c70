"""The certificate with which the operator serves its metrics: a folder that the kubelet keeps up to date.

Used by `lifecycle` and served by `probes`. Each handshake asks for the certificate, and at most one in a second looks
at the files, so a new certificate needs no restart. Files that are missing or broken end nothing: the certificate of
before stays, and without any the handshake is refused. Applications are scaled whatever happens here.
"""

import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog

log = structlog.get_logger()

LOOK_SECONDS = 1.0
"""Between two looks at the files."""
_NEXT = "the Secret of the chart's value monitoring.tls.secretName needs tls.crt and tls.key, which belong together"


@dataclass(slots=True)
class ServedCertificate:
    """One certificate with its key, as PEM files `tls.crt` and `tls.key`."""

    folder: Path
    monotonic: Callable[[], float] = time.monotonic
    _current: ssl.SSLContext | None = field(default=None, init=False)
    _stamp: str = field(default="", init=False)
    _looked_at: float = field(default=float("-inf"), init=False)
    _fault: str = field(default="", init=False)

    def context(self) -> ssl.SSLContext:
        """Make what a server needs: TLS 1.2 and 1.3, with the certificate as it is at each handshake."""
        context = _empty()
        context.sni_callback = self._choose
        self._look()
        return context

    def _choose(self, handshake: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> int | None:
        """Called in each handshake, also where the client names no server."""
        self._look()
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        handshake.context = self._current
        return None

    def _look(self) -> None:
        now = self.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            # The kubelet replaces the link `..data` at once: both files are of one version there.
            version = (self.folder / "..data").resolve() if (self.folder / "..data").exists() else self.folder
            files = version / "tls.crt", version / "tls.key"
            stamp = " ".join(f"{file} {file.stat().st_mtime_ns} {file.stat().st_size}" for file in files)
            if stamp == self._stamp:
                return
            context = _empty()
            context.load_cert_chain(*files, password=lambda: "")  # or it would ask on a terminal
        except (OSError, ValueError) as error:
            self._report(str(error))
            return
        if self._stamp or self._fault:
            log.info("certificate of metrics read", folder=str(self.folder))
        self._current, self._stamp, self._fault = context, stamp, ""

    def _report(self, fault: str) -> None:
        if fault != self._fault:
            served = "nothing" if self._current is None else "the certificate of before"
            log.warning("certificate of metrics cannot be used", error=fault, served=served, next=_NEXT)
        self._fault = fault


def _empty() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
