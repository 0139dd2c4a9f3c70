"""Signs a finished release by keys from files that the caller names; nothing leaves the machine.

Called by the command line. openssl, gpg and Helm sign: none of them knows a service to ask or to report to. Copies of
keys lie in a folder that only this user can read and that is gone afterwards; they never get into the release.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab.build.subprocesses import Command, run
from lab.errors import LabError
from lab.terminal import step
from release.records import checksums, statement

SIGNATURE = f"{checksums.NAME}.sig"
"""ECDSA over SHA-256 in DER, as `openssl dgst -verify` takes it."""
ENVELOPE = "provenance.dsse.json"
"""The statement with its signature, in the envelope that in-toto names."""
PAYLOAD = "application/vnd.in-toto+json"
PASSWORD = "RELEASE_KEY_PASSWORD"  # noqa: S105 -- the name of a variable
"""The variable with the password of an encrypted key."""


@dataclass(frozen=True)
class Keys:
    """Files with private keys."""

    release: Path
    """PEM, ECDSA P-256: signs the checksums and the statement."""
    openpgp: Path
    """What `gpg --export-secret-keys` wrote: signs the chart."""


def check(keys: Keys) -> None:
    """Refuse keys that cannot sign, before a build takes its time; LabError with what to do."""
    made = {
        keys.release: "openssl ecparam -genkey -name prime256v1 -noout | openssl pkcs8 -topk8 -out FILE",
        keys.openpgp: "gpg --export-secret-keys NAME > FILE",
    }
    for path, command in made.items():
        if path == Path():
            raise LabError(
                "release: no key is named",
                "without KEY and OPENPGP_KEY there is no signature",
                "make release KEY=release.pem OPENPGP_KEY=secret.gpg, or make release-build for one without signatures",
            )
        if not path.is_file():
            raise LabError(
                f"key {path}: not found", "there is no such file", f"name a file that you made with {command}"
            )
    asked: Command = ["openssl", "pkey", "-in", keys.release, "-noout", "-text_pub", "-passin", _passed()]
    told = subprocess.run(asked, capture_output=True, text=True, check=False, env=_with_password())
    if told.returncode != 0 or "prime256v1" not in told.stdout:
        why = told.stderr.strip().partition("\n")[0] if told.returncode else "it is a key of another kind"
        raise LabError(f"key {keys.release}: not usable", why, f"ECDSA P-256 in PEM is needed: {made[keys.release]}")
    identity(keys.openpgp)


def identity(key: Path) -> str:
    """Give the name in an OpenPGP key, by which Helm chooses it; LabError if the file has no private key."""
    return _of_key(key, "uid")


def fingerprint(key: Path) -> str:
    """Give the fingerprint of an OpenPGP key in hexadecimal digits; LabError if the file has no private key."""
    return _of_key(key, "fpr")


def _of_key(key: Path, record: str) -> str:
    """Give the first value of a kind of record that gpg shows."""
    with tempfile.TemporaryDirectory() as home:
        command: Command = ["gpg", "--homedir", home, "--batch", "--with-colons", "--show-keys", key]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line.split(":") for line in told.stdout.splitlines()]
    values = [row[9] for row in rows if row[0] == record]
    if not values or not any(row[0] == "sec" for row in rows):
        raise LabError(
            f"key {key}: no private OpenPGP key in it",
            told.stderr.strip().partition("\n")[0] or "gpg finds none",
            "write it with gpg --export-secret-keys NAME > FILE",
        )
    return str(values[0])


def sign(folder: Path, keys: Keys, helm: Path) -> None:
    """Write the signatures of a release into its folder. Raises LabError that names the tool and its words."""
    with tempfile.TemporaryDirectory() as place:
        workplace = Path(place)
        with step("Sign checksums and statement"):
            (folder / SIGNATURE).write_bytes(signature(keys.release, (folder / checksums.NAME).read_bytes()))
            (folder / ENVELOPE).write_text(envelope(keys.release, (folder / statement.NAME).read_bytes()))
        with step("Sign the chart"):
            _sign_chart(folder, keys.openpgp, helm, workplace)


def signature(key: Path, content: bytes) -> bytes:
    """Sign bytes with openssl; give the signature in DER."""
    command: Command = ["openssl", "dgst", "-sha256", "-sign", key, "-passin", _passed()]
    ran = subprocess.run(command, input=content, capture_output=True, check=False, env=_with_password())
    if ran.returncode != 0:
        raise LabError("openssl dgst: failed", ran.stderr.decode().strip(), "check the key and its password")
    return ran.stdout


def envelope(key: Path, payload: bytes) -> str:
    """Wrap a statement with its signature; what is signed names the type, so that it cannot pass for another."""
    whole = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(payload), payload)
    signed = {
        "payloadType": PAYLOAD,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"sig": base64.b64encode(signature(key, whole)).decode()}],
    }
    return json.dumps(signed, indent=1) + "\n"


def _sign_chart(folder: Path, key: Path, helm: Path, workplace: Path) -> None:
    """Have Helm write the provenance of the very archive that lies in the release."""
    (chart,) = folder.glob("streamapp-operator-*.tgz")
    ring = workplace / "secret.gpg"
    binary = _run(["gpg", "--homedir", workplace, "--batch", "--dearmor", "--output", ring, key], workplace, fails=True)
    if binary != 0:
        shutil.copy(key, ring)
    name = identity(key)
    unpacked = workplace / "chart"
    unpacked.mkdir()
    _run(["tar", "--extract", "--gzip", "--file", chart, "--directory", unpacked], workplace)
    packed = workplace / "packed"
    command: Command = [helm, "package", "--sign", "--key", name, "--keyring", ring, "--destination", packed]
    passphrase = os.environ.get(PASSWORD)
    if passphrase:
        (workplace / "passphrase").write_text(passphrase)
        command = [*command, "--passphrase-file", workplace / "passphrase"]
    _run([*command, unpacked / "streamapp-operator"], workplace)
    again = packed / chart.name
    if again.read_bytes() != chart.read_bytes():
        raise LabError(
            f"{chart.name}: packed again for its signature, it is another archive",
            "this Helm packs otherwise than the one that made the release",
            "build and sign with the Helm of versions.toml, as make release does",
        )
    provenance = Path(f"{again}.prov")
    provenance.write_text(_with_checksum(provenance.read_text(), workplace))
    shutil.move(provenance, folder)


def _with_checksum(provenance: str, workplace: Path) -> str:
    """Give a signed text with the checksum line of its signature.

    Helm writes none. Where the signature's length is a multiple of three, GnuPG 2.2 then finds no end of it, and gpgv
    calls a good signature broken.
    """
    signed, begin, block = provenance.partition("-----BEGIN PGP SIGNATURE-----\n")
    encoded, end, _ = block.partition("-----END PGP SIGNATURE-----")
    raw, armoured = workplace / "signature", workplace / "signature.asc"
    raw.write_bytes(base64.b64decode(encoded.rpartition("\n\n")[2]))
    _run(["gpg", "--homedir", workplace, "--batch", "--output", armoured, "--enarmor", raw], workplace)
    whole = armoured.read_text().partition("\n\n")[2].partition("-----END")[0]
    return f"{signed}{begin}\n{whole}{end}\n"


def _run(command: Command, workplace: Path, *, fails: bool = False) -> int:
    outcome = run(command, workplace / "log", environment=_with_password())
    if outcome.code != 0 and not fails:
        raise LabError(f"{Path(command[0]).name} {command[1]}: failed", outcome.why(), "check the key and its password")
    return outcome.code


def _passed() -> str:
    return f"env:{PASSWORD}"


def _with_password() -> dict[str, str]:
    """An empty password for a key that has none: openssl then asks nobody."""
    return {**os.environ, PASSWORD: os.environ.get(PASSWORD, "")}
