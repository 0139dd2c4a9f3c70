"""Builds labkube, the one program that is every Go part of the lab's Kubernetes, from `lab/labkube`.

Called by `lab.build.plan`. A cold build takes minutes and shows how far it is; the Go build cache keeps what a broken
one had done. `go.mod` and `go.sum` are what the program is: nothing here may change them, and `go mod tidy` must not
be run on them (a test dependency of metrics-server cannot be resolved).
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.subprocesses import Command, ToolResult, fetch, run
from lab.build.toolchains import MissingToolError, find, find_or_fetch_go, needed
from lab.errors import LabError
from lab.settings import LAB, Versions
from lab.terminal import counted, step

SOURCES = LAB / "labkube"
NAME = "labkube"
TAGS = ("-tags", "grpcnotrace")
"""As Kubernetes does: gRPC's tracing pages use templates, and these keep the linker from dropping unused methods."""
PROBE = "k8s.io/klog/v2"
"""A small module whose list of versions is asked for to learn whether the module proxy answers."""
PROBE_SECONDS = 20
_USERS_CHOICES = ("GOOS", "GOARCH", "GOFLAGS", "GOEXPERIMENT", "GOROOT")


def build_labkube(versions: Versions, cache: Cache, sources: Path = SOURCES) -> Path:
    """Give the folder that holds `labkube` and one link to it per part: `kubelet`, `kubectl`, `etcd` and so on.

    Raises LabError if there is no Go, a module cannot be fetched, the program does not compile, or it does not
    report the version that it should be.
    """
    go = find_or_fetch_go(versions, cache)
    flags = link_flags(versions)
    inputs: dict[str, str | Path] = {path.name: path for path in sorted(sources.glob("*.go"))}
    inputs |= {"go.mod": sources / "go.mod", "go.sum": sources / "go.sum"}
    inputs |= {"flags": " ".join([*TAGS, flags]), "go": _ask([go, "version"], sources).strip()}

    def build(folder: Path) -> None:
        program = folder / NAME
        _fetch_modules(go, sources, cache.log(NAME))
        _compile(go, sources, program, flags, cache.log(NAME))
        _link_parts(program)
        _check_version(folder, versions)

    return cache.entry(NAME, content_key(inputs), build)


def link_flags(versions: Versions) -> str:
    """Give the linker flags: no debug information, and the version that every part reports."""
    major, minor, _ = versions.kubernetes.split(".")
    variables = {
        "gitVersion": f"v{versions.kubernetes}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    packages = ("k8s.io/client-go/pkg/version", "k8s.io/component-base/version")
    set_all = [f"-X {package}.{name}={value}" for package in packages for name, value in variables.items()]
    return " ".join(["-s", "-w", *set_all])


def go_folders(versions: Versions) -> tuple[Path, Path]:
    """Give the folders of Go's build cache and of its modules, which need not exist; never fetches a Go."""
    try:
        build, modules = _ask([find(needed(versions)["go"]), "env", "GOCACHE", "GOMODCACHE"], Path.home()).splitlines()
    except MissingToolError:
        # As the Go that would be fetched will choose, unless `go env -w` of an older one chose otherwise.
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        own = Path(os.environ.get("GOPATH") or Path.home() / "go")
        build = os.environ.get("GOCACHE") or str(caches / "go-build")
        modules = os.environ.get("GOMODCACHE") or str(own / "pkg" / "mod")
    return Path(build), Path(modules)


def go_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Give the environment of every `go` command: the user's proxies stay, the user's build choices do not matter.

    GOFLAGS is set and not just left out, since `go env -w` may have stored one, which an empty value would bring back.
    """
    kept = {name: value for name, value in environment.items() if name not in _USERS_CHOICES}
    return kept | {
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def _fetch_modules(go: Path, sources: Path, log: Path) -> None:
    """Bring the sources of all modules onto this machine, asking the network only if some are missing."""
    listing: Command = [go, "list", "-deps", *TAGS, "."]
    offline = go_environment() | {"GOPROXY": "off"}
    if run(listing, log, folder=sources, environment=offline).code == 0:
        return
    with step("Fetch the Go modules of Kubernetes"):
        _expect_a_proxy(go, sources)
        outcome = fetch(listing, log, folder=sources, environment=go_environment())
        if outcome.code != 0:
            raise _failed("a Go module could not be fetched, or the sources name a package that is in none", outcome)


def _expect_a_proxy(go: Path, sources: Path) -> None:
    """Fail within seconds if no module can be fetched: without a network, `go` itself would wait for minutes."""
    proxies = _ask([go, "env", "GOPROXY"], sources).strip()
    question: Command = [go, "list", "-mod=mod", "-m", "-versions", PROBE]
    try:
        asked = subprocess.run(
            question,
            cwd=sources,
            env=go_environment(),
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
        why = asked.stderr.strip() if asked.returncode != 0 else ""
    except subprocess.TimeoutExpired:
        why = f"no answer within {PROBE_SECONDS} s about {PROBE}"
    if why:
        raise LabError(
            f"{NAME}: its Go modules could not be fetched",
            f"GOPROXY is {proxies}: {why}",
            "check the network and HTTPS_PROXY, or name a proxy that answers: go env -w GOPROXY=https://…",
        )


def _compile(go: Path, sources: Path, program: Path, flags: str, log: Path) -> None:
    packages = _ask([go, "list", "-deps", *TAGS, "."], sources, {"GOPROXY": "off"}).split()
    command: Command = [go, "build", "-v", "-trimpath", "-buildvcs=false", *TAGS, "-ldflags", flags, "-o", program, "."]
    # What is compiled passes through gigabytes of temporary files, which /tmp may keep in memory.
    with (
        counted("Build labkube, the programs of Kubernetes", len(packages), "packages") as advance,
        tempfile.TemporaryDirectory(dir=program.parent) as workplace,
    ):
        environment = go_environment() | {"GOTMPDIR": workplace}
        outcome = run(command, log, folder=sources, environment=environment, each_line=lambda _: advance())
    if outcome.code != 0:
        raise _failed("it does not compile", outcome)


def _failed(what: str, outcome: ToolResult) -> LabError:
    return LabError(
        f"{NAME}: {what}",
        outcome.why(),
        "if memory ran out or the network broke, run it again: what is done stays done. Else: git diff lab/labkube",
    )


def _link_parts(program: Path) -> None:
    """Link each part's name to the program, which knows them."""
    for part in _ask([program], program.parent).split():
        (program.parent / part).symlink_to(program.name)


def _check_version(folder: Path, versions: Versions) -> None:
    """Expect the pinned version: the linker says nothing about a variable that has moved elsewhere."""
    expected = f"Kubernetes v{versions.kubernetes}"
    reported = _ask([folder / "kubelet", "--version"], folder).strip()
    if reported != expected:
        raise LabError(
            f"{NAME}: it reports a wrong version",
            f"kubelet --version says {reported!r} where versions.toml wants {expected!r}",
            "make lab/labkube/go.mod and versions.toml agree; tests/lab_unit/test_versions.py compares them",
        )


def _ask(command: Command, folder: Path, more: Mapping[str, str] | None = None) -> str:
    """Give the standard output of a quick command that cannot well fail."""
    environment = go_environment() | dict(more or {})
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout
