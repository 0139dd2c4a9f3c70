"""Tools around the chart: Helm, Prometheus, and the resource definitions of the Prometheus operator.

Helm 4 is part of every lab and installs the operator there. Helm 3 only renders the chart in its tests, which build it
themselves, so that `lab up` does not wait for it. With the definitions the lab's API server validates the chart's
monitors and rules; the Prometheus operator itself does not run in the lab. Prometheus is built by the tests that fire
the alerts, which need no lab.
"""

import json
import shutil
import subprocess
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.labkube import go_environment
from lab.build.subprocesses import Command, fetch
from lab.build.toolchains import find_or_fetch_go
from lab.errors import LabError
from lab.settings import Versions
from lab.terminal import step


def build_helm(versions: Versions, cache: Cache, major: int = 4) -> Path:
    """Give the folder that holds `helm`, of the pinned version of that major number (3 or 4).

    Raises LabError if there is no Go, a module cannot be fetched, or the program reports another version.
    """
    version = {3: versions.helm_3, 4: versions.helm}[major]
    module = f"helm.sh/helm/v{major}"
    name = f"helm-{major}"
    flags = f"-s -w -X {module}/internal/version.version=v{version}"
    command: Command = ["install", "-trimpath", "-ldflags", flags, f"{module}/cmd/helm@v{version}"]

    def build(folder: Path) -> None:
        go = find_or_fetch_go(versions, cache)
        with step(f"Build Helm {version}, once: a minute or two"):
            outcome = fetch([go, *command], cache.log(name), environment=go_environment() | {"GOBIN": str(folder)})
        if outcome.code != 0:
            raise LabError(
                f"Helm {version}: it could not be built",
                outcome.why(noise=r"^\s*$|^go: downloading "),
                "check the network and GOPROXY; what was fetched stays fetched, so run it again",
            )
        _check_version(folder / "helm", version)

    # A newer Go gives the same program for our purpose: nobody waits for that.
    return cache.entry(name, content_key({"command": " ".join(map(str, command))}), build)


def _check_version(program: Path, version: str) -> None:
    """Expect the pinned version: the linker says nothing about a variable that has moved elsewhere."""
    asked = subprocess.run(
        [program, "version", "--template", "{{.Version}}"], capture_output=True, text=True, check=False, timeout=30
    )
    if asked.stdout.strip() != f"v{version}":
        raise LabError(
            f"Helm {version}: it reports a wrong version",
            f"it says {(asked.stdout or asked.stderr).strip()!r}",
            "look where this release keeps its version, and mend lab/build/chart_tools.py",
        )


MODULE = "github.com/prometheus-operator/prometheus-operator"


KINDS = ("podmonitors", "prometheusrules")


def prometheus_definitions(versions: Versions, cache: Cache) -> Path:
    """Give a folder with one CustomResourceDefinition a file; LabError if the module cannot be fetched."""
    version = f"v{versions.prometheus_operator}"

    def build(folder: Path) -> None:
        go = find_or_fetch_go(versions, cache)
        with step("Fetch the definitions of the Prometheus operator"):
            source = module_sources(go, MODULE, version) / "example" / "prometheus-operator-crd"
        for kind in KINDS:
            shutil.copyfile(source / f"monitoring.coreos.com_{kind}.yaml", folder / f"{kind}.yaml")

    return cache.entry("prometheus-definitions", content_key({"version": version, "kinds": " ".join(KINDS)}), build)


SERVER = "github.com/prometheus/prometheus"
SERVER_TAGS = "remove_all_sd,netgo"
"""Without the clouds that it can discover targets in, which are most of what would be compiled. Its pages are left out
as long as no tag asks for them."""


def build_prometheus(versions: Versions, cache: Cache) -> Path:
    """Give the folder that holds `prometheus` and `promtool`; seven minutes the first time.

    Raises LabError if there is no Go, the module cannot be fetched, or it does not compile.
    """
    version = versions.prometheus
    flags = f"-s -w -X github.com/prometheus/common/version.Version={version}"
    command: Command = ["build", "-trimpath", "-buildvcs=false", "-tags", SERVER_TAGS, "-ldflags", flags]
    parts = ("./cmd/prometheus", "./cmd/promtool")

    def build(folder: Path) -> None:
        go = find_or_fetch_go(versions, cache)
        with step(f"Build Prometheus {version}, once: seven minutes"):
            # In its own folder, unlike Helm: `go install` takes no module that replaces others.
            sources = module_sources(go, SERVER, _module_version(version))
            whole: Command = [go, *command, "-o", f"{folder}/", *parts]
            outcome = fetch(whole, cache.log("prometheus"), folder=sources, environment=go_environment())
        if outcome.code != 0:
            raise LabError(
                f"Prometheus {version}: it could not be built",
                outcome.why(noise=r"^\s*$|^go: downloading "),
                "check the network and GOPROXY; what was fetched stays fetched, so run it again",
            )

    inputs = {"version": version, "command": " ".join(map(str, command)), "parts": " ".join(parts)}
    return cache.entry("prometheus", content_key(inputs), build)


def _module_version(version: str) -> str:
    """Give the version of the Go module for one of Prometheus 3: `3.13.5` is `v0.313.5`."""
    major, minor, patch = version.split(".")
    return f"v0.{major}{int(minor):02}.{patch}"


def module_sources(go: Path, module: str, version: str) -> Path:
    """Give the folder with the sources of a Go module; LabError if it cannot be fetched."""
    fetched = subprocess.run(
        [go, "mod", "download", "-json", f"{module}@{version}"],
        env=go_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if fetched.returncode != 0:
        raise LabError(
            f"{module} {version}: it could not be fetched",
            fetched.stderr.strip() or fetched.stdout.strip(),
            "check the network and GOPROXY, then run it again",
        )
    return Path(json.loads(fetched.stdout)["Dir"])
