"""Packs the chart with the digests of the release's own images in its values.

Called by `release.build`. The registry stays empty: where the images are pushed is the installer's choice.
"""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from lab.build.subprocesses import run
from lab.errors import LabError
from release.source import Source

CHART = "charts/streamapp-operator"


def with_digests(values: str, digests: Mapping[str, str]) -> str:
    """Write digests, as `sha256:…` by the name of an image, into the text of a chart's values.

    Raises LabError where the text has not exactly one empty digest for a name.
    """
    for name, digest in digests.items():
        place = re.compile(rf'^(  {re.escape(name)}: {{.*\bdigest: )""', re.MULTILINE)
        values, count = place.subn(rf'\g<1>"{digest}"', values)
        if count != 1:
            raise LabError(
                f"chart: values.yaml has {count} places for the digest of the image {name}",
                'one line `NAME: {…, digest: ""}` below `images` is expected',
                "restore that line, or teach release/parts/chart.py the new form",
            )
    return values


def pack(source: Source, digests: Mapping[str, str], helm: Path, workplace: Path, target: Path) -> Path:
    """Pack the chart of the commit into the folder `target`; give the archive."""
    chart = workplace / Path(CHART).name
    shutil.copytree(source.folder / CHART, chart)
    values = chart / "values.yaml"
    values.write_text(with_digests(values.read_text(), digests))
    # Helm gives each file in the archive the time that it has here.
    os.utime(values, (source.epoch, source.epoch))
    return package(chart, helm, target, source, workplace / "log")


def package(chart: Path, helm: Path, target: Path, source: Source, log: Path, *signing: str | Path) -> Path:
    """Have Helm pack a folder, signed if the options of `signing` say so; give the archive."""
    command = [helm, "package", chart, "--destination", target, *signing]
    outcome = run(command, log, environment=source.environment() | {"HOME": str(log.parent), "PATH": "/usr/bin:/bin"})
    if outcome.code != 0:
        raise LabError("chart: helm package failed", outcome.why(), f"run helm lint {CHART}")
    (packed,) = target.glob(f"{chart.name}-*.tgz")
    return packed
