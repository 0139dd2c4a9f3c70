"""`python -m release`: build, sign and verify. `make release` and `make verify-release` call it."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.table import Table

from lab.build.cache import Cache
from lab.build.chart_tools import build_helm
from lab.errors import LabError
from lab.settings import REPOSITORY, Settings
from lab.terminal import results, show_error
from release import changelog, definition, fresh_root, numbering, signing
from release.build import build
from release.listings.publication import Publication
from release.signing import Keys
from release.source import commit_of

CHANGELOG = REPOSITORY / "CHANGELOG.md"
FOLDER = click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
KEY = click.Path(dir_okay=False, path_type=Path)


@click.group()
def release() -> None:
    """Make a release from the commit that is checked out, sign it, and check one. Nothing is published."""


@release.command("build")
@FOLDER
@click.option("--url", default="", help="The folder from which users will load the files; for the manifest of krew.")
@click.option("--registry", default="", help="Where the images will be: for the bundle of OLM and for Artifact Hub.")
@click.option("--key-url", default="", help="Where the public OpenPGP key is served; for Artifact Hub.")
@click.option(
    "--openpgp-key", type=KEY, help="The key that will sign the chart; its fingerprint goes beside --key-url."
)
def build_command(folder: Path, url: str, registry: str, key_url: str, openpgp_key: Path | None) -> None:
    """Write all files of a release into FOLDER: the same commit and options give the same bytes."""
    fingerprint = signing.fingerprint(openpgp_key) if key_url and openpgp_key else ""
    publication = Publication(url, registry.rstrip("/"), key_url, fingerprint)
    source = build(REPOSITORY, folder, Settings.from_environment(), publication)
    _show(folder, f"{source.version}, commit {source.commit[:12]}")


@release.command("check-keys")
@click.option("--key", type=KEY, required=True)
@click.option("--openpgp-key", type=KEY, required=True)
def check_keys_command(key: Path, openpgp_key: Path) -> None:
    """Refuse keys that could not sign, before a build takes its time."""
    signing.check(Keys(key, openpgp_key))


@release.command("sign")
@FOLDER
@click.option("--key", type=KEY, required=True, help="Private key in PEM, ECDSA P-256.")
@click.option("--openpgp-key", type=KEY, required=True, help="What gpg --export-secret-keys wrote.")
def sign_command(folder: Path, key: Path, openpgp_key: Path) -> None:
    """Sign the release in FOLDER. RELEASE_KEY_PASSWORD has the password of encrypted keys."""
    if not (folder / "SHA256SUMS").is_file():
        raise LabError(f"release {folder}: not found", "it has no SHA256SUMS", "make it first: make release-build")
    settings = Settings.from_environment()
    keys = Keys(key, openpgp_key)
    signing.check(keys)
    cache = Cache(settings.cache)
    signing.sign(folder, keys, build_helm(settings.versions, cache) / "helm")


@release.command("verify")
@FOLDER
@click.option("--key", type=KEY, required=True, help="Public key in PEM.")
@click.option("--openpgp-key", type=KEY, required=True, help="Public OpenPGP key, as gpg --export wrote it.")
def verify_command(folder: Path, key: Path, openpgp_key: Path) -> None:
    """Check the release in FOLDER in a fresh root file system, which has only it, the keys and the checker."""
    sys.exit(fresh_root.verify(folder, key, openpgp_key, Settings.from_environment()))


@release.command("check-definition")
@click.option("--since", metavar="REVISION", help="Compare with this commit or tag. Default: the last release.")
def check_definition_command(since: str | None) -> None:
    """Refuse a definition that prunes or tightens without a line in a Breaking section of the changelog."""
    old = definition.read(REPOSITORY / definition.BASELINE) if since is None else definition.read_at(REPOSITORY, since)
    found = definition.changes(old, definition.read(REPOSITORY / definition.DEFINITION))
    for change in found:
        results.print(str(change), markup=False, highlight=False)
    named = changelog.breaking(CHANGELOG.read_text(), numbering.version_of(REPOSITORY))
    left = definition.unnamed(found, named)
    if left:
        raise LabError(
            f"{definition.DEFINITION}: takes something from users",
            "; ".join(map(str, left)),
            "keep it as it was, or name the path in backticks under `### Breaking` of CHANGELOG.md",
        )


@release.command("cut")
@click.option("--date", "day", type=click.DateTime(["%Y-%m-%d"]), default=None, help="Default: today in UTC.")
def cut_command(day: datetime | None) -> None:
    """Give the unreleased part of the changelog the version of the source tree and a date."""
    version = numbering.version_of(REPOSITORY)
    text = changelog.cut(CHANGELOG.read_text(), version, (day or datetime.now(UTC)).date())
    CHANGELOG.write_text(text)
    results.print(f"CHANGELOG.md has a section of {version}. Next: make generate, commit, tag v{version}.")


@release.command("begin")
@click.argument("version")
@click.option("--release", "revision", default="HEAD", help="The commit of the last release. Default: HEAD.")
def begin_command(version: str, revision: str) -> None:
    """Write the number of the next VERSION, and the commit from which an upgrade must work, into the source tree."""
    changed = numbering.begin(REPOSITORY, version, commit_of(REPOSITORY, revision))
    for path in changed:
        results.print(str(path), markup=False, highlight=False)


def _show(folder: Path, title: str) -> None:
    table = Table("file", "bytes", "SHA-256", title=f"Release {title}", title_justify="left")
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        table.add_row(name, f"{(folder / name).stat().st_size:,}", digest[:16])
    results.print(table)


def main() -> int:
    """Run a command; an error names object, cause and next step."""
    try:
        release(prog_name="python -m release", standalone_mode=True)
    except LabError as error:
        show_error(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
