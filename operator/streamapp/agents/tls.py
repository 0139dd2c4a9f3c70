"""Whom the operator takes for an agent: the authority that it trusts, the name in the certificate, and what was wrong.

Used by `client`, which connects to the address of a pod and expects the name of that pod. A context is made by the
controller from a Secret's `ca.crt`. Whatever fails here, no request is sent, and so no token.
"""

import ssl
from dataclasses import dataclass

import aiohttp

MOST_AUTHORITIES_BYTES = 64 * 1024
"""Of `ca.crt`: about forty certificates."""

_AUTHORITY = "check that the Secret's `ca.crt` is the authority that issued its `tls.crt`"
_OWN = "its agent has no usable certificate: look in the pod's log for lines of `streamapp-agent`"
_RENEW = "renew it: with cert-manager look at the Certificate's conditions; the agent takes a new one without a restart"
_NEXT_STEPS = {
    # The numbers are OpenSSL's, `X509_V_ERR_…`.
    9: "check the clocks of this pod's node and of the authority",
    10: _RENEW,
    18: f"{_OWN}, or `ca.crt` is another authority",
    19: _AUTHORITY,
    20: _AUTHORITY,
    21: _AUTHORITY,
}
_HOSTNAME_MISMATCH = 62
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2. With DHE the server chooses the prime: one of 10,000 bits takes a second of the event loop."""


class AuthoritiesUnusableError(Exception):
    """Text that is no list of certificates; says why, and what to do."""


@dataclass(frozen=True, slots=True)
class AgentTls:
    """How to know one agent."""

    context: ssl.SSLContext
    """Trusts the authorities of its Secret and no others."""
    server_name: str
    """The DNS name that its certificate must have: the pod's, whatever address is connected to."""


def trusting(authorities: str) -> ssl.SSLContext:
    """Make a context for TLS 1.2 and 1.3 that trusts these certificates and no others.

    Args:
        authorities: PEM text, of one certificate or several.

    Raises:
        AuthoritiesUnusableError: It is no such text, or too long.
    """
    if not authorities.strip():
        # Without any authority the library would trust all those of the system.
        raise AuthoritiesUnusableError("`ca.crt` is empty; write certificates as PEM text")
    if len(authorities) > MOST_AUTHORITIES_BYTES:
        raise AuthoritiesUnusableError(
            f"`ca.crt` is longer than {MOST_AUTHORITIES_BYTES} bytes; leave only authorities"
        )
    try:
        # Bundles have names in any language beside the certificates, and the library takes ASCII alone.
        context = ssl.create_default_context(cadata=authorities.encode("ascii", "replace").decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise AuthoritiesUnusableError(f"`ca.crt` cannot be used ({error}); write certificates as PEM text") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    # `ca.crt` can be an authority below another one.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    return context


def refusal(error: aiohttp.ClientConnectorError, tls: AgentTls) -> str:
    """Say why the one who answered was not trusted, and what to do."""
    cause = error.certificate_error if isinstance(error, aiohttp.ClientConnectorCertificateError) else error.os_error
    if isinstance(cause, ssl.SSLCertVerificationError):
        if cause.verify_code == _HOSTNAME_MISMATCH:
            step = "add that name to the certificate, or the wildcard for all pods"
            return f"its certificate is not valid for {tls.server_name}; {step}"
        step = _NEXT_STEPS.get(cause.verify_code, _AUTHORITY)
        return f"its certificate is not trusted ({cause.verify_message}); {step}"
    if isinstance(cause, ssl.SSLError) and cause.reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"}:
        step = "its agent is older than its template, or another program listens there: restart the pod"
        return f"it speaks no TLS although its pod has a certificate, so no token was sent; {step}"
    said = getattr(cause, "reason", None) or str(cause)
    return f"there was no TLS connection ({said}); look in the pod's log for lines of `streamapp-agent`"
