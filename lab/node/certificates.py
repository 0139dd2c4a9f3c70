"""The lab's own certificate authority: made anew at every start, valid for a year, never leaves the state folder."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALIDITY = timedelta(days=365)
# A clock that was set back a little between two starts must not make the certificates unusable.
_SKEW = timedelta(hours=1)


@dataclass(frozen=True)
class Authority:
    """A certificate authority and the folder it writes to."""

    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def create(cls, folder: Path, name: str) -> "Authority":
        """Make an authority; its certificate is `<folder>/<name>.crt`, its key is never written."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(subject, subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        _write(folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))
        return cls(folder, name, key, certificate)

    def issue(self, file: str, user: str, group: str = "", hosts: tuple[str, ...] = ()) -> None:
        """Write `<file>.crt` and `<file>.key`: for a client `user` in `group`, or a server where hosts are given."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        if group:
            names.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        usage = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = _builder(x509.Name(names), self.certificate.subject, key.public_key()).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        _write(self.folder / f"{file}.crt", certificate.public_bytes(serialization.Encoding.PEM))
        _write(self.folder / f"{file}.key", _private(key))


def write_signing_key(file: Path) -> None:
    """Write the RSA key with which service-account tokens are signed."""
    _write(file, _private(rsa.generate_private_key(public_exponent=65537, key_size=2048)))


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALIDITY)
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
