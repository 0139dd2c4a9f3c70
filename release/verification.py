#!/usr/bin/env python3
"""Checks a release against the public keys of its makers; needs Python, openssl and gpgv, and no other file.

Run as `python3 verification.py FOLDER --key release.pub`, on any machine: it takes nothing from the clone and asks
nothing of a network. `make verify-release` runs it in a fresh root file system. Each check prints one line; a release
is good only if all of them hold.
"""

import argparse
import base64
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

Command = list[str | Path]
SUMS = "SHA256SUMS"
ENVELOPE = "provenance.dsse.json"
STATEMENT = "provenance.intoto.json"
PAYLOAD = "application/vnd.in-toto+json"
BILL = ".cdx.json"
PROCESSORS = ["amd64", "arm64"]
PLAIN = (BILL, ".intoto.json")
"""Files that describe others need no bill of their own."""
TEXTS = (".krew.yaml", "INSTALL.md")
"""Artifacts that are made of no other part."""


class BrokenError(Exception):
    """What does not hold: names the file, and what it should be."""


def digest(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def one(folder: Path, pattern: str) -> Path:
    """The only file of that form."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise BrokenError(f"{pattern}: {len(found)} files are there, one is expected")
    return found[0]


def listed(folder: Path) -> dict[str, str]:
    """The digests that the list of checksums has, by name."""
    rows = [line.split("  ") for line in (folder / SUMS).read_text().splitlines()]
    return {name: value for value, name in rows}


def signed_by(key: Path, content: bytes, signature: bytes, name: str) -> None:
    """Have openssl judge a signature over bytes."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "content").write_bytes(content)
        (Path(place) / "signature").write_bytes(signature)
        judged: Command = ["-verify", key, "-signature", f"{place}/signature", f"{place}/content"]
        command: Command = ["openssl", "dgst", "-sha256", *judged]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise BrokenError(f"{name}: {key.name} did not sign it: {(ran.stderr or ran.stdout).strip().splitlines()[0]}")


def check_signature(folder: Path, key: Path) -> str:
    """The list of checksums is signed."""
    signed_by(key, (folder / SUMS).read_bytes(), (folder / f"{SUMS}.sig").read_bytes(), f"{SUMS}.sig")
    return f"{SUMS} is signed by {key.name}"


def check_sums(folder: Path) -> str:
    """Every file is there as listed, and no other but signatures."""
    sums = listed(folder)
    for name, expected in sums.items():
        if not (folder / name).is_file():
            raise BrokenError(f"{name}: listed in {SUMS}, and not there")
        if digest(folder / name) != expected:
            raise BrokenError(f"{name}: it is not the file that {SUMS} lists")
    signatures = {SUMS, f"{SUMS}.sig", ENVELOPE}
    strange = {path.name for path in folder.iterdir()} - set(sums) - signatures
    strange -= {f"{name}.prov" for name in sums}
    if strange:
        raise BrokenError(f"{', '.join(sorted(strange))}: not listed in {SUMS}")
    return f"{len(sums)} files are as listed"


def check_statement(folder: Path, key: Path) -> str:
    """The statement is signed, and names what is there."""
    envelope = json.loads((folder / ENVELOPE).read_text())
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"]
    whole = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
    signed_by(key, whole, base64.b64decode(envelope["signatures"][0]["sig"]), ENVELOPE)
    told = json.loads((folder / STATEMENT).read_text())
    if kind != PAYLOAD or json.loads(payload) != told:
        raise BrokenError(f"{STATEMENT}: another statement is signed")
    subjects = {each["name"]: each["digest"]["sha256"] for each in told["subject"]}
    artifacts = {name: value for name, value in listed(folder).items() if not name.endswith(PLAIN)}
    if subjects != artifacts:
        raise BrokenError(f"{STATEMENT}: it names {len(subjects)} artifacts, and {len(artifacts)} are there")
    commit = told["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"]["gitCommit"]
    return f"{len(subjects)} artifacts come from commit {commit}"


def check_chart(folder: Path, openpgp_key: Path) -> str:
    """The chart is signed as Helm signs charts."""
    chart = one(folder, "streamapp-operator-*.tgz")
    provenance = Path(f"{chart}.prov")
    with tempfile.TemporaryDirectory() as place:
        ring, text = Path(place) / "ring", Path(place) / "text"
        ring.write_bytes(without_armour(openpgp_key.read_bytes()))
        command: Command = ["gpgv", "--keyring", ring, "--output", text, provenance]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise BrokenError(f"{provenance.name}: {openpgp_key.name} did not sign it: {ran.stderr.strip()}")
        signed = re.findall(rf"{re.escape(chart.name)}: sha256:([0-9a-f]{{64}})", text.read_text())
    if signed != [digest(chart)]:
        raise BrokenError(f"{provenance.name}: it is of another {chart.name}")
    return f"{chart.name} is signed by {openpgp_key.name}"


def without_armour(key: bytes) -> bytes:
    """A key as gpgv reads it, from either form that gpg exports."""
    if not key.startswith(b"-----BEGIN"):
        return key
    body = key.decode().partition("\n\n")[2].partition("\n=")[0]
    return base64.b64decode(body)


def check_images(folder: Path) -> str:
    """Every archive holds what its digests say, for all processors, and the chart names the very digests."""
    chart = one(folder, "streamapp-operator-*.tgz")
    with tarfile.open(chart) as packed:
        file = packed.extractfile("streamapp-operator/values.yaml")
        values = file.read().decode() if file else ""
    told = dict(re.findall(r'^  (\w+): \{.*digest: "(sha256:[0-9a-f]{64})"', values, re.MULTILINE))
    found = {path.name.split("-")[1]: index_digest(path) for path in sorted(folder.glob("streamapp-*.oci.tar"))}
    if told != found or not found:
        raise BrokenError(f"{chart.name}: it names the images {told}, and the archives are {found}")
    for bundle in folder.glob("streamapp-operator-bundle-*.tar.gz"):
        named = set(re.findall(r"image: '?[^\s'@]+@(sha256:[0-9a-f]{64})", cluster_service_version(bundle)))
        if named != set(found.values()):
            raise BrokenError(f"{bundle.name}: it names the images {named}, and the archives are {found}")
    return f"the chart names the digests of {', '.join(found)}"


def cluster_service_version(bundle: Path) -> str:
    """The ClusterServiceVersion in a bundle."""
    with tarfile.open(bundle) as packed:
        file = packed.extractfile("manifests/streamapp-operator.clusterserviceversion.yaml")
        return file.read().decode() if file else ""


def index_digest(archive: Path) -> str:
    """The digest of an archive's index; every blob must be what its name says."""
    with tarfile.open(archive) as packed:
        blobs = {}
        for entry in packed:
            file = packed.extractfile(entry)
            content = file.read() if file else b""
            if entry.name.startswith("blobs/sha256/"):
                blobs[entry.name.rpartition("/")[2]] = content
                if hashlib.sha256(content).hexdigest() != entry.name.rpartition("/")[2]:
                    raise BrokenError(f"{archive.name}: {entry.name} is not what its name says")
            elif entry.name == "index.json":
                top = json.loads(content)["manifests"][0]["digest"]
    index = json.loads(blobs[top.partition(":")[2]])
    if sorted(each["platform"]["architecture"] for each in index["manifests"]) != PROCESSORS:
        raise BrokenError(f"{archive.name}: it is not for {' and '.join(PROCESSORS)}")
    for each in index["manifests"]:
        manifest = json.loads(blobs[each["digest"].partition(":")[2]])
        missing = [part for part in (manifest["config"], *manifest["layers"]) if part["digest"][7:] not in blobs]
        if missing:
            raise BrokenError(f"{archive.name}: {len(missing)} of its layers are missing")
    return str(top)


def check_bills(folder: Path) -> str:
    """Every artifact has a bill of materials that names it by its digest."""
    count = 0
    for name, value in listed(folder).items():
        if name.endswith((*PLAIN, *TEXTS)):
            continue
        bill = folder / f"{name}{BILL}"
        if not bill.is_file():
            raise BrokenError(f"{name}: no bill of materials {bill.name}")
        told = json.loads(bill.read_text())
        if told["bomFormat"] != "CycloneDX" or told["metadata"]["component"]["hashes"][0]["content"] != value:
            raise BrokenError(f"{bill.name}: it is not of this {name}")
        count += 1
    return f"{count} artifacts have a bill of materials"


def check_krew(folder: Path) -> str:
    """The manifest of krew has the digests of the plugins."""
    manifest = one(folder, "*.krew.yaml").read_text()
    told = set(re.findall(r"sha256: '?([0-9a-f]{64})", manifest))
    plugins = {digest(path) for path in folder.glob("kubectl-streamapp-*.tar.gz")}
    if told != plugins or not plugins:
        raise BrokenError("streamapp.krew.yaml: it names other archives than those that are there")
    return f"the manifest of krew names {len(plugins)} archives"


def check_installs(folder: Path) -> str:
    """The wheel installs without a network, and the plugin of this machine runs."""
    version = one(folder, "streamapp_operator-*.whl").name.split("-")[1]
    with tempfile.TemporaryDirectory() as place:
        venv.create(f"{place}/venv", with_pip=True)
        pip: Command = [f"{place}/venv/bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
        said([*pip, one(folder, "*.whl")], "the wheel does not install")
        ask = "import importlib.metadata, streamapp; print(importlib.metadata.version('streamapp-operator'))"
        if said([f"{place}/venv/bin/python", "-c", ask], "the wheel does not load").strip() != version:
            raise BrokenError(f"the wheel installs another version than {version}")
        processor = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[said(["uname", "-m"], "uname").strip()]
        archive = one(folder, f"kubectl-streamapp-*-{sys.platform}-{processor}.tar.gz")
        with tarfile.open(archive) as packed:
            file = packed.extractfile("kubectl-streamapp")
            Path(place, "kubectl-streamapp").write_bytes(file.read() if file else b"")
        shown = said([sys.executable, f"{place}/kubectl-streamapp", "--help"], "the plugin does not run", home=place)
    if "Usage: kubectl streamapp" not in shown:
        raise BrokenError(f"{archive.name}: its help is {shown!r}")
    return f"the wheel installs, and {archive.name} runs"


def said(command: Command, what: str, home: str | None = None) -> str:
    """What a program prints; it must end well."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home or "/nonexistent", "LANG": "C.UTF-8"}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if ran.returncode != 0:
        raise BrokenError(f"{what}: {ran.stderr.strip() or ran.stdout.strip()}")
    return ran.stdout


def checks(asked: argparse.Namespace) -> Iterator[Callable[[], str]]:
    """All checks, in the order in which each may rely on those before it."""
    folder = asked.folder
    yield lambda: check_signature(folder, asked.key)
    yield lambda: check_sums(folder)
    yield lambda: check_statement(folder, asked.key)
    if asked.openpgp_key:
        yield lambda: check_chart(folder, asked.openpgp_key)
    yield lambda: check_images(folder)
    yield lambda: check_bills(folder)
    yield lambda: check_krew(folder)
    if asked.install:
        yield lambda: check_installs(folder)


def main() -> int:
    """Run all checks; 0 if all hold."""
    parser = argparse.ArgumentParser(description="Check a release by the public keys of its makers.")
    parser.add_argument("folder", type=Path, help="where all files of the release lie")
    parser.add_argument("--key", type=Path, required=True, help="public key in PEM, of the checksums")
    parser.add_argument(
        "--openpgp-key", type=Path, help="public OpenPGP key of the chart; without it, that is unchecked"
    )
    parser.add_argument("--install", action="store_true", help="also install the wheel and run the plugin")
    asked = parser.parse_args()
    for check in checks(asked):
        try:
            print(f"ok      {check()}", flush=True)  # noqa: T201 -- this file stands alone
        except FileNotFoundError as error:
            print(f"BROKEN  {error.filename}: not found\n        Use nothing of this release.")  # noqa: T201
            return 1
        except (BrokenError, KeyError, ValueError) as error:
            print(f"BROKEN  {error}\n        Use nothing of this release.")  # noqa: T201
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
