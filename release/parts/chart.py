"""Packs the chart with the digests of the release's own images in its values, and renders it.

Called by `release.build`. The registry stays empty: where the images are pushed is the installer's choice.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lab.build.subprocesses import run
from lab.errors import LabError
from release.source import Source

CHART = "charts/streamapp-operator"
OLDEST_KUBERNETES = "1.30.0"
"""Of those that the chart allows: nothing is rendered that only a newer one serves."""


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


def with_annotations(chart: str, annotations: Mapping[str, str]) -> str:
    """Add annotations to the text of Chart.yaml."""
    whole = yaml.safe_load(chart)
    whole["annotations"] = {**whole.get("annotations", {}), **annotations}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)


def pack(
    source: Source,
    digests: Mapping[str, str],
    annotations: Mapping[str, str],
    helm: Path,
    workplace: Path,
    target: Path,
) -> Path:
    """Pack the chart of the commit, with digests and more annotations, into the folder `target`; give the archive."""
    chart = workplace / Path(CHART).name
    shutil.copytree(source.folder / CHART, chart)
    values = chart / "values.yaml"
    values.write_text(with_digests(values.read_text(), digests))
    named = chart / "Chart.yaml"
    named.write_text(with_annotations(named.read_text(), annotations))
    # Helm gives each file in the archive the time that it has here.
    for path in (values, named):
        os.utime(path, (source.epoch, source.epoch))
    return package(chart, helm, target, source, workplace / "log")


def rendered(packed: Path, values: Mapping[str, Any], helm: Path, source: Source, workplace: Path) -> list[Any]:
    """Have Helm render an archive with values, as for the release of the chart's own name; give the objects."""
    place = ("--namespace", "streamapp-system", "--kube-version", OLDEST_KUBERNETES, "--values", "-")
    ran = subprocess.run(
        [helm, "template", Path(CHART).name, packed, *place],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
        env=source.environment() | {"HOME": str(workplace), "PATH": "/usr/bin:/bin"},
    )
    if ran.returncode != 0:
        raise LabError("chart: helm template failed", ran.stderr.strip(), f"run helm lint {CHART}")
    return [each for each in yaml.safe_load_all(ran.stdout) if each]


def package(chart: Path, helm: Path, target: Path, source: Source, log: Path, *signing: str | Path) -> Path:
    """Have Helm pack a folder, signed if the options of `signing` say so; give the archive."""
    command = [helm, "package", chart, "--destination", target, *signing]
    outcome = run(command, log, environment=source.environment() | {"HOME": str(log.parent), "PATH": "/usr/bin:/bin"})
    if outcome.code != 0:
        raise LabError("chart: helm package failed", outcome.why(), f"run helm lint {CHART}")
    (packed,) = target.glob(f"{chart.name}-*.tgz")
    return packed
