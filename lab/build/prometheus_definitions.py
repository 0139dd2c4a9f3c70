"""Fetches the definitions of the Prometheus operator's resources, from its Go module: 4 MB, nothing is compiled.

They let the lab's API server judge what the chart makes for it; the operator itself does not run in the lab.
"""

import json
import shutil
import subprocess
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.labkube import go_environment
from lab.build.toolchains import find_or_fetch_go
from lab.errors import LabError
from lab.settings import Versions
from lab.terminal import step

MODULE = "github.com/prometheus-operator/prometheus-operator"
KINDS = ("podmonitors", "prometheusrules")


def prometheus_definitions(versions: Versions, cache: Cache) -> Path:
    """Give a folder with one CustomResourceDefinition a file; LabError if the module cannot be fetched."""
    version = f"v{versions.prometheus_operator}"

    def build(folder: Path) -> None:
        go = find_or_fetch_go(versions, cache)
        with step("Fetch the definitions of the Prometheus operator"):
            fetched = subprocess.run(
                [go, "mod", "download", "-json", f"{MODULE}@{version}"],
                env=go_environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
        if fetched.returncode != 0:
            raise LabError(
                f"{MODULE} {version}: it could not be fetched",
                fetched.stderr.strip() or fetched.stdout.strip(),
                "check the network and GOPROXY, then run it again",
            )
        source = Path(json.loads(fetched.stdout)["Dir"]) / "example" / "prometheus-operator-crd"
        for kind in KINDS:
            shutil.copyfile(source / f"monitoring.coreos.com_{kind}.yaml", folder / f"{kind}.yaml")

    return cache.entry("prometheus-definitions", content_key({"version": version, "kinds": " ".join(KINDS)}), build)
