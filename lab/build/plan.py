"""Builds everything that the embedded lab runs, in the order in which a fault shows soonest.

The door of this package: called by the command line and by the cluster that is about to start. One step after the
other: the long one, compiling Kubernetes, keeps every core busy, and what could run beside it takes under a minute.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.build import bases, maven, python_packages
from lab.build.cache import Cache
from lab.build.chart_tools import build_helm, prometheus_definitions
from lab.build.images import BuiltImage, Image, build_image, build_with_docker
from lab.build.init_programs import AGENT, SEED, init_program
from lab.build.labkube import NAME, build_labkube, go_folders
from lab.build.toolchains import MissingToolError, problems, together
from lab.settings import EXAMPLES, LAB, REPOSITORY, Settings, Versions

MB = 10**6
ENTRIES = 1900 * MB
"""All entries of the cache once, those of the operator's image included."""
GO_BUILD_CACHE = 3400 * MB
"""What 2980 packages compile to: the sum of their files in a build cache. Until the end they lie a second time in the
folder where labkube is built."""
HELM_BUILD_CACHE = 650 * MB
"""What Helm 4 adds to it: 577 MiB."""
GO_MODULES = 1200 * MB
"""An empty module cache after the modules of labkube (678 MiB) and Helm 4 (424 MiB) came in."""
GO_TOOLCHAIN = 300 * MB
MAVEN_REPOSITORY = 300 * MB
"""An empty repository after the broker's jars, the demo application (159 MiB together) and what the agent adds."""
REBUILT = 1000 * MB
"""A new labkube or image beside the old one, with what it takes while it is built."""
KAFKA = LAB / "images" / "kafka"
COUNTER = EXAMPLES / "counter"
OPERATOR = REPOSITORY / "operator" / "images" / "operator"
ANALYTICS = REPOSITORY / "operator" / "images" / "analytics"
LICENCES = {
    f"licenses/{path.name}": path
    for path in (*python_packages.LICENCES, REPOSITORY / "operator" / "images" / "GO-LICENSE")
}
"""What an image with a program in Go has to bring along; the others have it in the product's wheel."""


@dataclass(frozen=True)
class Built:
    """What `build_all` made or found."""

    bin: Path
    """A folder with `labkube` and a link to it for every part: `kube-apiserver`, `kubectl` and so on."""
    helm: Path
    """A folder with `helm`."""
    images: Mapping[str, BuiltImage]
    """By short name: `pause`, `kafka`, `counter`, `seed`, `agent`, `operator`."""


def build_all(settings: Settings) -> Built:
    """Build what is not in the cache yet and give the places of all of it.

    Takes minutes the first time and well under a second when nothing has changed. Raises LabError.
    """
    try:
        return _build_all(settings)
    except MissingToolError:
        raise together(problems(settings.versions)) from None


def _build_all(settings: Settings) -> Built:
    cache = Cache(settings.cache)
    images = {"pause": bases.pause(settings.versions, cache)}
    java = bases.debian_java(settings.versions, cache)
    images["kafka"] = build_image(kafka(settings.versions, cache, java), settings.versions, cache)
    images["counter"] = build_image(counter(settings.versions, cache, java), settings.versions, cache)
    python = bases.debian_python(settings.versions, cache)
    images["seed"] = build_image(seed(settings.versions, cache), settings.versions, cache)
    images["agent"] = build_image(agent(settings.versions, cache), settings.versions, cache)
    images["operator"] = build_image(operator(cache, python), settings.versions, cache)
    # Helm last: it shares what it can with what Kubernetes was compiled to.
    labkube = build_labkube(settings.versions, cache)
    prometheus_definitions(settings.versions, cache)
    built = Built(labkube, build_helm(settings.versions, cache), images)
    cache.prune()
    return built


def disk_needed(settings: Settings) -> list[tuple[Path, int]]:
    """Give the folders that `build_all` fills, with the bytes that each may take at most.

    Several of them usually lie on one disk, which then needs the sum. Measured on amd64 with empty caches; what Go and
    Maven have from elsewhere is not subtracted. A cache that holds a whole labkube, of whichever version, needs little:
    what changes is compiled on what Go kept. Neither builds nor fetches anything.
    """
    cache = Cache(settings.cache)
    if cache.holds(NAME):
        return [(settings.cache, REBUILT)]
    build, modules = go_folders(settings.versions)
    return [
        (settings.cache, ENTRIES + GO_BUILD_CACHE + GO_TOOLCHAIN),
        (build, GO_BUILD_CACHE + HELM_BUILD_CACHE),
        (modules, GO_MODULES),
        (Path.home() / ".m2" / "repository", MAVEN_REPOSITORY),
    ]


def kafka(versions: Versions, cache: Cache, base: BuiltImage | None = None) -> Image:
    """Describe the broker's image; without a `base` it stands on the one that its Dockerfile names."""
    context = {"lib": maven.broker_jars(versions, cache), "kafka-start": KAFKA / "kafka-start"}
    return Image("streamapp/kafka", versions.broker, KAFKA / "Dockerfile", context, base)


def counter(versions: Versions, cache: Cache, base: BuiltImage | None = None) -> Image:
    """Describe the demo application's image; its context looks like its folder after `mvn package`."""
    jars = maven.package(COUNTER, versions, cache)
    context = {"target/lib": jars / "lib", "target/counter.jar": jars / "counter.jar"}
    return Image("streamapp/counter", "lab", COUNTER / "Dockerfile", context, base)


def seed(versions: Versions, cache: Cache) -> Image:
    """Describe the image of the init container that prepares a pod's volume."""
    context = {"seed": init_program(SEED, "seed", versions, cache), **LICENCES}
    return Image("streamapp/seed", "lab", SEED / "Dockerfile", context)


def agent(versions: Versions, cache: Cache) -> Image:
    """Describe the image of the init container that brings the agent."""
    context = {
        "bring": init_program(AGENT, "bring", versions, cache),
        maven.AGENT_JAR: maven.agent_jar(versions, cache) / maven.AGENT_JAR,
        **LICENCES,
    }
    return Image("streamapp/agent", "lab", AGENT / "Dockerfile", context)


def operator(cache: Cache, base: BuiltImage | None = None) -> Image:
    """Describe the operator's image."""
    context = {
        "dependencies": python_packages.dependencies("operator", cache),
        "streamapp": python_packages.product(cache),
    }
    return Image("streamapp/operator", "lab", OPERATOR / "Dockerfile", context, base)


def analytics(versions: Versions, cache: Cache, parts: Mapping[str, BuiltImage], base: BuiltImage | None) -> Image:
    """Describe the pipeline's image; `parts` has the one that Java is copied from."""
    context = {
        "dependencies": python_packages.dependencies("analytics", cache),
        "kafka-jars": maven.connector_jars(versions, cache),
        "streamapp": python_packages.product(cache),
        **{name: ANALYTICS / name for name in (".dockerignore", "streamapp-analytics")},
    }
    return Image("streamapp/analytics", "lab", ANALYTICS / "Dockerfile", context, base, parts=parts)


def build_analytics(settings: Settings) -> BuiltImage:
    """Build the pipeline's image, which is large and which nothing in the lab needs but the tests of it; LabError."""
    versions, cache = settings.versions, Cache(settings.cache)
    java = {"JAVA": bases.debian_java(versions, cache)}
    return build_image(analytics(versions, cache, java, bases.debian_python(versions, cache)), versions, cache)


def build_for_docker(settings: Settings) -> list[str]:
    """Build the same images with the machine's Docker, on their public bases; give their full names. For kind."""
    versions, cache = settings.versions, Cache(settings.cache)
    own = (seed(versions, cache), agent(versions, cache), operator(cache))
    images = (kafka(versions, cache), counter(versions, cache), *own)
    return [build_with_docker(image, cache.log(image.entry)) for image in images]
