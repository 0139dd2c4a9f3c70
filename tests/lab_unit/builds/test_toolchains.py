"""Tools are found by what they say of themselves; programs on a path of the test's own stand in for other machines."""

from pathlib import Path

import pytest

from lab.build.toolchains import MissingToolError, Tool, find, needed, older, problems, together, version_of
from lab.settings import Versions

VERSIONS = Versions.read()


def program(folder: Path, name: str, says: str, code: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'end'\n{says}\nend\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs, before the machine's own and with the shell's commands behind it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


@pytest.mark.parametrize(
    ("name", "says", "version"),
    [
        ("go", "go version go1.19.8 linux/amd64", "1.19.8"),
        ("go", "go version go1.27rc1 linux/arm64", "1.27"),
        ("go", "go version devel go1.28-ea3a2f1 Tue Nov 3 10:00:00 2026 linux/amd64", "1.28"),
        ("javac", "javac 17.0.15", "17.0.15"),
        ("javac", "javac 1.8.0_292", "1.8.0"),
        ("javac", "javac 21-ea", "21"),
        ("mvn", "\x1b[1mApache Maven 3.8.7\x1b[m\nMaven home: /usr/share/maven", "3.8.7"),
        ("buildah", "buildah version 1.28.2 (image-spec 1.1.0-rc2, runtime-spec 1.0.2-dev)", "1.28.2"),
        ("mmdebstrap", "mmdebstrap 1.3.5", "1.3.5"),
        ("gcc", "12.2.0", "12.2.0"),
        ("go", "go: cannot find GOROOT directory", None),
    ],
)
def test_a_version_is_read_from_what_the_tool_prints(machine: Path, name: str, says: str, version: str | None) -> None:
    assert version_of(needed(VERSIONS)[name], program(machine, name, says)) == version


def test_a_program_that_fails_or_is_none_has_no_version(machine: Path) -> None:
    tool = needed(VERSIONS)["gcc"]
    broken = machine / "gcc"
    broken.write_text("no program")
    broken.chmod(0o755)
    assert (version_of(tool, broken), version_of(tool, program(machine, "gcc", "12.2.0", code=1))) == (None, None)


@pytest.mark.parametrize(
    ("version", "lowest", "is_older"),
    [
        ("1.9", "1.26", True),
        ("1.26", "1.26.0", False),
        ("1.26.3", "1.26.4", True),
        ("1.27", "1.26.4", False),
        ("17.0.15", "17", False),
        ("1.8.0", "17", True),
    ],
)
def test_versions_compare_number_by_number(version: str, lowest: str, is_older: bool) -> None:
    assert older(version, lowest) is is_older


@pytest.mark.usefixtures("machine")
def test_a_tool_that_is_missing_is_named_with_what_is_needed_and_how_to_get_it() -> None:
    with pytest.raises(MissingToolError) as raised:
        find(Tool("Maven", "no-such-mvn", ("--version",), r"([\d.]+)", "3.8", "maven"))
    assert raised.value == MissingToolError(
        what="Maven: not found",
        why="3.8 or newer is needed; no no-such-mvn in PATH",
        next_step="apt-get install maven",
        packages="maven",
    )


def test_a_tool_that_is_too_old_is_named_with_its_path_and_version(machine: Path) -> None:
    old = program(machine, "mvn", "Apache Maven 3.6.3 (cecedd343002696d0abb50b32b541b8a6ba2883f)")
    with pytest.raises(MissingToolError) as raised:
        find(needed(VERSIONS)["mvn"])
    assert raised.value == MissingToolError(
        what="Maven: too old",
        why=f"{VERSIONS.maven} or newer is needed; {old} is 3.6.3",
        next_step="apt-get install maven",
        packages="maven",
    )


def test_all_that_is_missing_or_too_old_is_named_at_once_with_one_command(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, says in (("javac", "javac 17.0.15"), ("gcc", "12.2.0"), ("mmdebstrap", "mmdebstrap 1.3.5")):
        program(machine, name, says)
    old = program(machine, "buildah", "buildah version 1.23.1")
    (machine / "cat").symlink_to("/bin/cat")
    monkeypatch.setenv("PATH", str(machine))
    assert together(problems(VERSIONS)) == MissingToolError(
        what="build tools: Maven: not found; Buildah: too old",
        why=f"Maven: {VERSIONS.maven} or newer is needed; no mvn in PATH\n"
        f"    Buildah: 1.28 or newer is needed; {old} is 1.23.1",
        next_step="apt-get install maven buildah",
        packages="maven buildah",
    )


def test_the_java_of_java_home_serves_where_the_one_in_path_is_too_old(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(machine, "javac", "javac 11.0.20")
    (tmp_path / "jdk").mkdir()
    newer = program(tmp_path / "jdk" / "bin", "javac", "javac 21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find(needed(VERSIONS)["javac"]) == newer
