"""A small release with real signatures: files of the right names and forms, with little in them."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from release import archives, signing
from release.parts import images, plugin
from release.records import bills, checksums, statement
from release.records.contents import Part
from release.source import Source
from tests.release.test_parts import a_layout

EPOCH = 1_700_000_000
CHART = "streamapp-operator-1.2.3.tgz"


@dataclass(frozen=True)
class KeyPair:
    """Files with a throwaway key."""

    private: Path
    public: Path


def openssl(*arguments: str | Path, given: bytes | None = None) -> bytes:
    """Run openssl; give what it prints."""
    return subprocess.run(["openssl", *arguments], input=given, check=True, capture_output=True).stdout


def a_key(folder: Path, name: str = "release") -> KeyPair:
    """Make a key as docs/releases.md says."""
    pair = KeyPair(folder / f"{name}.pem", folder / f"{name}.pub")
    made = openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout")
    pair.private.write_bytes(openssl("pkcs8", "-topk8", "-nocrypt", given=made))
    openssl("pkey", "-in", pair.private, "-pubout", "-out", pair.public)
    return pair


def gpg(home: Path, *arguments: str | Path) -> bytes:
    """Run gpg with a home of its own; give what it prints."""
    home.mkdir(mode=0o700, exist_ok=True)
    # GnuPG's agent listens below its home, and a socket's path must be short.
    command = ["gpg", "--homedir", home, "--batch", "--pinentry-mode=loopback", "--passphrase=", *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


def an_openpgp_key(home: Path) -> KeyPair:
    """Make a key as docs/releases.md says."""
    gpg(home, "--quick-generate-key", "Releases <releases@example.org>", "rsa4096", "sign", "never")
    pair = KeyPair(home / "secret.gpg", home / "public.asc")
    pair.private.write_bytes(gpg(home, "--export-secret-keys"))
    pair.public.write_bytes(gpg(home, "--armor", "--export"))
    return pair


def a_release(folder: Path, key: KeyPair, workplace: Path) -> Path:
    """Write all files of a release but the provenance of the chart, signed by `key`."""
    tree = workplace / "source"
    (tree / "release" / "parts").mkdir(parents=True)
    for name in statement.LOCKS:
        (tree / name).write_text(name)
    source = Source(tree, "c" * 40, EPOCH, "1.2.3")
    folder.mkdir()
    made = [
        images.pack(
            name,
            {each: a_layout(workplace / name / each, each, name) for each in images.PROCESSORS},
            folder / f"streamapp-{name}-1.2.3.oci.tar",
            EPOCH,
        )
        for name in ("agent", "operator", "seed")
    ]
    lines = [f'  {image.name}: {{repository: "", tag: "", digest: "{image.digest}"}}\n' for image in made]
    values = f"images:\n{''.join(lines)}"
    archives.tar_gz(folder / CHART, {"streamapp-operator/values.yaml": values.encode()}, EPOCH)
    plugins = {each: folder / f"{plugin.PROGRAM}-1.2.3-{each.name}.tar.gz" for each in plugin.PLATFORMS}
    for platform, archive in plugins.items():
        archives.tar_gz(archive, {plugin.PROGRAM: platform.name.encode()}, EPOCH)
    artifacts = sorted(folder.iterdir())
    for artifact in artifacts:
        bills.write(artifact, [Part("pypi", "yarl", "1.0", "Apache-2.0")], source)
    (folder / "streamapp.krew.yaml").write_text(plugin.krew_manifest(source, plugins, ""))
    stated = statement.statement(source, [*artifacts, folder / "streamapp.krew.yaml"], {"go": "go1"}, {"url": ""})
    (folder / statement.NAME).write_text(stated)
    checksums.write(folder)
    sign(folder, key)
    return folder


def sign(folder: Path, key: KeyPair) -> None:
    """Sign all but the chart, which takes Helm."""
    content = (folder / checksums.NAME).read_bytes()
    (folder / signing.SIGNATURE).write_bytes(signing.signature(key.private, content))
    stated = (folder / statement.NAME).read_bytes()
    (folder / signing.ENVELOPE).write_text(signing.envelope(key.private, stated))
