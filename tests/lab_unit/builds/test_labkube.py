"""The build of labkube: its flags, and what a person reads when it fails, with real modules that are small."""

import subprocess
import textwrap
from pathlib import Path

import pytest

from lab.build.cache import Cache
from lab.build.labkube import SOURCES, build_labkube, go_environment, link_flags
from lab.build.toolchains import MissingToolError, find, needed
from lab.errors import LabError
from lab.settings import Versions

VERSIONS = Versions.read()


def new_enough_go() -> Path | None:
    """Give the machine's Go; one that is too old must not lead to a download here."""
    try:
        return find(needed(VERSIONS)["go"])
    except MissingToolError:
        return None


GO = new_enough_go()
needs_go = pytest.mark.skipif(GO is None, reason=f"needs Go {VERSIONS.go} or newer")


def module(folder: Path, main: str, require: str = "") -> Path:
    (folder / "main.go").write_text(textwrap.dedent(main))
    (folder / "go.mod").write_text(f"module labkube\n\ngo {VERSIONS.go}\n{require}")
    (folder / "go.sum").touch()
    return folder


def test_the_linker_sets_the_version_in_both_packages_that_report_one() -> None:
    flags = link_flags(VERSIONS).split(" ")
    major, minor, _ = VERSIONS.kubernetes.split(".")
    reported = ["gitMajor=" + major, "gitMinor=" + minor, "gitTreeState=clean", "gitVersion=v" + VERSIONS.kubernetes]
    assert flags[:2] == ["-s", "-w"]
    assert sorted(flags[3::2]) == [
        *(f"k8s.io/client-go/pkg/version.{variable}" for variable in reported),
        *(f"k8s.io/component-base/version.{variable}" for variable in reported),
    ]


def test_a_users_choices_for_other_builds_do_not_reach_this_one_and_their_proxies_do() -> None:
    user = {"GOFLAGS": "-mod=vendor", "GOOS": "plan9", "GOWORK": "/their/go.work", "GOPROXY": "https://goproxy.test"}
    assert go_environment(user) == {
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOFLAGS": "-mod=readonly",
        "GOPROXY": "https://goproxy.test",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


@pytest.mark.slow
@needs_go
def test_a_program_that_does_not_compile_is_told_with_the_compilers_words(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    module(sources, "package main\n\nfunc main() { undefinedName() }\n")
    cache = Cache(tmp_path / "cache")
    with pytest.raises(LabError) as raised:
        build_labkube(VERSIONS, cache, sources)
    error = raised.value
    assert (error.what, error.next_step.endswith("git diff lab/labkube")) == ("labkube: it does not compile", True)
    assert error.why.splitlines()[-3:] == [
        "    # labkube",
        "    ./main.go:3:15: undefined: undefinedName",
        f"    (all of it: {cache.log('labkube')})",
    ]


@pytest.mark.slow
@needs_go
def test_a_program_that_reports_another_version_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    main = """
        package main

        import "os"

        func main() {
            if len(os.Args) == 1 {
                os.Stdout.WriteString("kubelet\\n")
            } else {
                os.Stdout.WriteString("Kubernetes v0.0.0\\n")
            }
        }
    """
    with pytest.raises(LabError) as raised:
        build_labkube(VERSIONS, Cache(tmp_path / "cache"), module(sources, main))
    assert raised.value.why == (
        f"kubelet --version says 'Kubernetes v0.0.0' where versions.toml wants 'Kubernetes v{VERSIONS.kubernetes}'"
    )


@needs_go
def test_modules_that_cannot_be_fetched_are_told_at_once_with_the_proxy_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "no-modules"))
    sources = tmp_path / "sources"
    sources.mkdir()
    main = 'package main\n\nimport _ "example.test/absent"\n\nfunc main() {}\n'
    module(sources, main, "\nrequire example.test/absent v1.0.0\n")
    with pytest.raises(LabError) as raised:
        build_labkube(VERSIONS, Cache(tmp_path / "cache"), sources)
    assert raised.value.what == "labkube: its Go modules could not be fetched"
    assert raised.value.why.startswith("GOPROXY is http://127.0.0.1:1: ")
    assert raised.value.why.endswith("dial tcp 127.0.0.1:1: connect: connection refused")


@needs_go
def test_the_sources_are_formatted_as_gofmt_does_it() -> None:
    assert GO is not None
    gofmt = GO.resolve().with_name("gofmt")
    listed = subprocess.run([gofmt, "-l", SOURCES], capture_output=True, text=True, check=True, timeout=30)
    assert listed.stdout == ""
