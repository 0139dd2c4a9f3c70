"""A certificate authority of a test: its certificates are PEM text, valid for the loopback address unless told."""

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12

DAY = timedelta(days=1)


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(frozen=True)
class Issued:
    """A certificate with its key, as PEM text."""

    chain: str
    key: str
    p12: bytes
    """Both in a binary store, as Strimzi's `user.p12`."""

    def serving(self) -> ssl.SSLContext:
        """A context of a server that presents it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(self.key + self.chain)
            file.flush()
            context.load_cert_chain(file.name)
        return context


@dataclass
class Authority:
    """One that a side trusts."""

    name: str
    _key: rsa.RSAPrivateKey = field(default_factory=_key)

    @property
    def pem(self) -> str:
        """Its own certificate."""
        authority = x509.BasicConstraints(ca=True, path_length=None)
        return _text(self._sign(self.name, self._key.public_key(), DAY, authority))

    @property
    def own(self) -> Issued:
        """Its own certificate as one of a server: signed by itself."""
        return Issued(self.pem, _key_text(self._key), b"")

    def issue(self, name: str, hosts: tuple[str, ...] = ("127.0.0.1",), lasts: timedelta = DAY) -> Issued:
        """Make a certificate; with a negative `lasts` it has ended."""
        key = _key()
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        certificate = self._sign(name, key.public_key(), lasts, names)
        store = pkcs12.serialize_key_and_certificates(
            b"user", key, certificate, None, serialization.BestAvailableEncryption(b"store")
        )
        return Issued(_text(certificate), _key_text(key), store)

    def _sign(
        self, name: str, key: rsa.RSAPublicKey, lasts: timedelta, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, self.name)]))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 2 * DAY)
            .not_valid_after(now + lasts)
            .add_extension(extension, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_text(key: rsa.RSAPrivateKey) -> str:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def _text(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
