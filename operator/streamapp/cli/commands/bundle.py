"""`bundle`: one archive with all that explains the state of a StreamApp, and with no secret in it.

The user sees what it holds before it is written, and can read every line with `--dry-run`.
"""

import io
import os
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import click
from rich.console import Group
from rich.text import Text

from streamapp.cli.cluster import operator_pods, streamapps
from streamapp.cli.cluster.support_files import SupportFile, SupportReader, json_file, object_file, text_file
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands import doctor
from streamapp.cli.commands.confirm import require_yes
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.app_view import view_of
from streamapp.cli.model.explain import explain
from streamapp.cli.screens import documents, watch
from streamapp.cli.screens.bundle import bundle_screen
from streamapp.cli.text import console
from streamapp.kube.client.kinds import Key

_OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRequest:
    """The options of the command line."""

    name: str
    operator_namespace: str
    archive: Path | None
    """None: a name with the time, in the current folder."""
    application_logs: bool
    dry_run: bool
    yes: bool


def bundle(target: Target, request: BundleRequest) -> int:
    """Read everything, show what was read, ask, and write the archive; give the exit code."""
    key, files = run(_read(target, request))
    if request.dry_run:
        console.show_paged(Group(*(Text(_with_title(file)) for file in files), bundle_screen(files)))
        return Exit.FINE
    at = watch.now()
    archive = request.archive or Path(f"streamapp-{key.namespace}-{key.name}-{at:%Y%m%dT%H%M%S}.tar.gz")
    console.show(bundle_screen(files))
    require_yes(f"bundle of {key}", f"write {archive}", yes=request.yes)
    _write(archive, files, at)
    click.echo(f"{archive} written; read it before you send it: tar -xzf {archive}")
    return Exit.FINE


async def _read(target: Target, request: BundleRequest) -> tuple[Key, list[SupportFile]]:
    """Read every file; CliError if the StreamApp itself cannot be read."""
    connection = await streamapps.resolve(target)
    key = Key(streamapps.namespace_of(target, connection), request.name)
    async with streamapps.open_client(connection, streamapps.title_of(key.namespace, key.name)) as client:
        resource = await streamapps.read(client, connection, key)
        at = watch.now()
        reader = SupportReader(client, key, request.operator_namespace)
        files = [
            object_file("streamapp.yaml", resource),
            json_file("status.json", documents.of_status(view_of(resource, at))),
            json_file("explanation.json", documents.of_explanation(explain(resource, at))),
            *await reader.of_objects(),
            *await reader.of_operator(),
        ]
        try:
            leader = await operator_pods.find_leader(client, request.operator_namespace)
        except CliError as error:
            files.append(SupportFile(path="operator/answers", text="", unread=f"{error.what}: {error.why}"))
        else:
            files += await reader.of_answers(leader.pod)
        if request.application_logs:
            files += await reader.of_application_logs()
        report = await doctor.examine(client, connection, request.operator_namespace, key.namespace, key.name)
    files.append(json_file("doctor.json", documents.of_report(report)))
    return key, [_about(key, at, files), *files]


def _about(key: Key, at: datetime, files: Sequence[SupportFile]) -> SupportFile:
    """The first file: what this is, of when, by which versions, and what is missing."""
    lines = [
        f"Support bundle of StreamApp {key}, read at {at.isoformat()}.",
        f"Command line {version('streamapp-operator')}, Python {platform.python_version()}, {platform.platform()}.",
        "Values that could be secret were removed. Secrets and ConfigMaps were not read.",
        "",
        *(f"not read: {file.path}: {file.unread}" for file in files if file.unread),
    ]
    return text_file("about.txt", "\n".join(lines).rstrip() + "\n")


def _with_title(file: SupportFile) -> str:
    return f"==> {file.path} <==\n{file.text or file.unread}\n"


def _write(archive: Path, files: Sequence[SupportFile], at: datetime) -> None:
    """Write a new archive that only its owner can read; CliError if that fails, and then nothing is left."""
    folder = archive.name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz")
    try:
        descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    except FileExistsError as error:
        raise CliError(f"file {archive}", "it exists already", "name another one with --file") from error
    except OSError as error:
        raise _not_written(archive, error) from error
    try:
        with os.fdopen(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as tar:
            for file in files:
                if not file.unread:
                    _add(tar, f"{folder}/{file.path}", file.text.encode(), at)
    except OSError as error:
        archive.unlink(missing_ok=True)
        raise _not_written(archive, error) from error


def _add(tar: tarfile.TarFile, path: str, content: bytes, at: datetime) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mtime, entry.mode = len(content), int(at.timestamp()), _OWNER_ONLY
    tar.addfile(entry, io.BytesIO(content))


def _not_written(archive: Path, error: OSError) -> CliError:
    return CliError(f"file {archive}", error.strerror or str(error), "name a file in a folder that you can write to")
