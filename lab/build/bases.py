"""Makes the images that the embedded lab cannot pull: the pause image and the bases for Java and Python.

Called by `lab.build.plan`. They come from the machine's own Debian mirrors, JDK and C compiler. Whoever has a registry
needs none of them: the Dockerfiles above these bases name public ones as their default.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from lab.build.cache import Cache, content_key
from lab.build.images import BuiltImage, Image, build_image
from lab.build.subprocesses import Command, fetch, run
from lab.build.toolchains import find, java_home, needed
from lab.errors import LabError
from lab.settings import LAB, Versions
from lab.terminal import step

IMAGES = LAB / "images"
APT = Path("/etc/apt")
SYSTEM = "system.tar"

JAVA_PACKAGES = ("base-files", "busybox", "libc6", "libstdc++6", "zlib1g")
"""What a JVM and RocksDB's library link to, and a shell."""
JAVA_MODULES = (
    "java.se",  # all of the standard, so that an application runs here if it runs on a whole JRE
    "jdk.charsets",
    "jdk.crypto.ec",
    "jdk.httpserver",  # the agent's reports
    "jdk.incubator.vector",  # Spark asks for it at each start
    "jdk.jcmd",
    "jdk.jfr",
    "jdk.management",
    "jdk.management.agent",
    "jdk.naming.dns",
    "jdk.net",
    "jdk.security.auth",
    "jdk.security.jgss",
    "jdk.unsupported",
    "jdk.zipfs",
)
PYTHON_PACKAGES = ("ca-certificates", "python-is-python3", "python3", "python3-pip")

APT_OPTIONS = (
    'Acquire::Languages "none"',
    'Acquire::Retries "3"',
    'Acquire::http::Timeout "15"',
    'Acquire::https::Timeout "15"',
)
IMPATIENT = {"RES_OPTIONS": "timeout:5 attempts:1"}
"""One question to the name server: where none answers, apt would ask for two minutes."""
CLEAN = """rm -rf "$1"/usr/share/doc "$1"/usr/share/info "$1"/usr/share/locale "$1"/usr/share/man \
"$1"/usr/lib/*/gconv "$1"/usr/lib/python3*/EXTERNALLY-MANAGED "$1"/etc/apt/apt.conf.d/99mmdebstrap \
"$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/var/log/*"""
"""Nobody reads these in a container. Debian's mark against `pip install` is for machines, and the lab's apt options
may hold a proxy of this machine."""


def pause(versions: Versions, cache: Cache) -> BuiltImage:
    """Give the image of every pod's sandbox, compiled from one C file."""
    source = IMAGES / "pause" / "pause.c"

    def build(folder: Path) -> None:
        with step("Compile pause"):
            command: Command = [find(needed(versions)["gcc"]), "-static", "-Os", "-s", "-Wall", "-Wextra", "-Werror"]
            outcome = run([*command, "-o", folder / "pause", source], cache.log("pause"))
            if outcome.code != 0:
                raise LabError("pause: it does not compile", outcome.why(), "apt-get install gcc libc6-dev")

    program = cache.entry("pause", content_key({"source": source}), build) / "pause"
    image = Image("streamapp/pause", "1", IMAGES / "pause" / "Dockerfile", {"pause": program})
    return build_image(image, versions, cache)


def debian_java(versions: Versions, cache: Cache) -> BuiltImage:
    """Give the base for Java: a runtime linked from the machine's JDK on the few Debian packages that it needs."""
    system = _debian("debian-java-system", "extract", JAVA_PACKAGES, versions, cache)
    runtime = java_runtime(versions, cache)
    context = {SYSTEM: system, "java": runtime}
    image = Image("streamapp/debian-java", versions.java, IMAGES / "debian-java" / "Dockerfile", context)
    return build_image(image, versions, cache)


def debian_python(versions: Versions, cache: Cache) -> BuiltImage:
    """Give the base for Python: a minimal Debian with its own Python 3 and pip."""
    system = _debian("debian-python-system", "minbase", PYTHON_PACKAGES, versions, cache)
    image = Image("streamapp/debian-python", "3", IMAGES / "debian-python" / "Dockerfile", {SYSTEM: system})
    return build_image(image, versions, cache)


def _debian(name: str, variant: str, packages: tuple[str, ...], versions: Versions, cache: Cache) -> Path:
    """Give a tar of a Debian with these packages, made once, from the mirrors that the machine itself uses."""
    sources = apt_sources(APT)
    options = (f"--variant={variant}", f"--include={','.join(packages)}", f"--customize-hook={CLEAN}")

    def build(folder: Path) -> None:
        with step(f"Fetch the Debian packages of {name}"):
            fetch_debian(name, options, folder / SYSTEM, versions, cache.log(name))

    inputs = {"variant": variant, "packages": " ".join(packages), "clean": CLEAN, **_named(sources)}
    return cache.entry(name, content_key(inputs), build) / SYSTEM


def fetch_debian(
    name: str,
    options: tuple[str, ...],
    target: Path,
    versions: Versions,
    log: Path,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Have mmdebstrap write a Debian to `target`, by its own options; `environment` goes before the machine's.

    Raises LabError with the words of mmdebstrap.
    """
    sources = apt_sources(APT)
    with tempfile.TemporaryDirectory(dir=target.parent) as workplace:
        mirrors = [Path(workplace, path.name) for path in sources]
        for mirror, text in zip(mirrors, sources.values(), strict=True):
            mirror.write_text(text)
        settings = Path(workplace, "apt.conf")
        settings.write_text(_apt_settings())
        of_apt = [f"--aptopt={option}" for option in (settings, *APT_OPTIONS)]
        # Without a suite, mmdebstrap takes it from the mirrors.
        command: Command = [find(needed(versions)["mmdebstrap"]), *options, *of_apt, "", target, *mirrors]
        outcome = fetch(command, log, environment={**os.environ, **IMPATIENT, **environment})
    if outcome.code != 0:
        named = " and ".join(map(str, sources))
        next_step = f"see that apt-get update works with {named}"
        raise LabError(f"{name}: mmdebstrap failed", outcome.why(noise="^I: |^E: mmdebstrap failed"), next_step)


def apt_sources(apt: Path) -> dict[Path, str]:
    """Give the files that name the distribution's own mirrors, without comments and installation media.

    Other repositories of the machine stay out: the lab needs nothing of theirs, and one that is down would break it.
    Raises LabError if there is none.
    """
    own = [apt / "sources.list", *(apt / "sources.list.d" / f"{name}.sources" for name in ("debian", "ubuntu"))]
    sources: dict[Path, str] = {}
    for path in own:
        lines = path.read_text().splitlines() if path.is_file() else []
        kept = [line for line in lines if not line.startswith(("#", "deb cdrom:"))]
        if any(kept):
            sources[path] = "\n".join(kept) + "\n"
    if not sources:
        raise LabError(
            "base images: no Debian mirror is known",
            f"none of {', '.join(map(str, own))} names one",
            f"on Debian or Ubuntu, write one into {own[0]}; elsewhere use CLUSTER=kind",
        )
    return sources


def _named(sources: dict[Path, str]) -> dict[str, str]:
    return {f"mirrors {path}": text for path, text in sources.items()}


def _apt_settings() -> str:
    """Give the machine's own proxies and checks: mmdebstrap starts from an empty configuration."""
    command = ["apt-config", "dump", "--no-empty", "--format", '%f "%v";%n', "Acquire"]
    settings = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    wanted = ("Acquire::http", "Acquire::ftp", "Acquire::Check-")
    return "".join(line for line in settings.splitlines(keepends=True) if line.startswith(wanted))


def java_release(home: Path) -> str:
    """Describe a JDK by the file that a JDK carries; by its folder if it does not."""
    release = home / "release"
    return release.read_text() if release.is_file() else str(home)


def java_runtime(versions: Versions, cache: Cache) -> Path:
    """Give a Java runtime with the modules named above, and its class archive, which halves the start of a JVM."""
    home = java_home(versions)

    def build(folder: Path) -> None:
        with step("Link a Java runtime"):
            runtime = folder / "java"
            link: Command = [home / "bin" / "jlink", "--no-header-files", "--no-man-pages", "--compress=1"]
            modules: Command = ["--add-modules", ",".join(JAVA_MODULES), "--output", runtime]
            outcome = run([*link, *modules], cache.log("java-runtime"))
            if outcome.code == 0:
                outcome = run([runtime / "bin" / "java", "-Xshare:dump"], cache.log("java-runtime"))
            if outcome.code != 0:
                next_step = "apt-get install openjdk-17-jdk-headless"
                raise LabError("Java runtime: it cannot be linked", outcome.why(), next_step)

    inputs = {"modules": " ".join(JAVA_MODULES), "release": java_release(home)}
    return cache.entry("java-runtime", content_key(inputs), build) / "java"
