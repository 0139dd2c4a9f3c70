"""Makes all files of a release from one commit, in the order in which a fault shows soonest.

Called by the command line. It works in a folder of its own and with a cache of its own, so that nothing that an
earlier build left can get into a release; only tools come from the lab's cache. The finished folder appears whole or
not at all.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from lab.build.cache import Cache
from lab.build.chart_tools import build_helm
from lab.build.images import Image
from lab.build.init_programs import init_program
from lab.build.maven import AGENT_JAR, agent_jar
from lab.build.toolchains import find_or_fetch_go
from lab.errors import LabError
from lab.settings import Settings
from lab.terminal import step
from release import archives, changelog, tools
from release.listings import artifact_hub, olm
from release.listings.publication import Publication
from release.parts import chart, images, packages, pages, plugin, system
from release.parts.images import Archive
from release.records import bills, checksums, contents, statement
from release.records.contents import Part
from release.source import Source, export

LICENCES = ("LICENSE", "NOTICE", "THIRD-PARTY-LICENSES.md")
MANIFEST = "streamapp.krew.yaml"
BASE = "lab/images/debian-python/Dockerfile"
"""Lays out a root file system and nothing else."""
UV_PLATFORMS = {"amd64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}


@dataclass(frozen=True)
class Bench:
    """What every step of one build needs."""

    source: Source
    workplace: Path
    """Gone after the build."""
    target: Path
    """Where the files of the release are laid."""
    settings: Settings
    own: Cache
    """Empty at the start, so that every part is built from the commit."""
    shared: Cache
    """The lab's, for tools."""

    def room(self, name: str) -> Path:
        """Make a folder for one step."""
        folder = self.workplace / name
        folder.mkdir(parents=True)
        return folder


def build(
    repository: Path, target: Path, settings: Settings, publication: Publication, place: Path | None = None
) -> Source:
    """Write the release of the commit that is checked out in `repository` into the folder `target`.

    `place` is where to work, by default the system's folder for temporary files: three gigabytes. Raises LabError;
    `target` is then as it was before.
    """
    if target.exists() and any(target.iterdir()):
        raise LabError(
            f"release: {target} is not empty", "files of two releases must not mix", f"remove it: rm -r {target}"
        )
    with tempfile.TemporaryDirectory(dir=place, prefix="release-") as folder:
        workplace = Path(folder)
        source = export(repository, workplace / "source")
        made = workplace / "made"
        made.mkdir()
        bench = Bench(source, workplace, made, settings, Cache(workplace / "cache"), Cache(settings.cache))
        _fill(bench, publication)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)
    return source


def _fill(bench: Bench, publication: Publication) -> None:
    source, target = bench.source, bench.target
    helm = build_helm(bench.settings.versions, bench.shared) / "helm"
    go = find_or_fetch_go(bench.settings.versions, bench.shared)
    with step("Wheel and source archive"):
        wheel, sdist = packages.wheel_and_sdist(source, target, bench.workplace / "wheel.log")
    parts: dict[Path, list[Part]] = {wheel: contents.of_wheel(wheel), sdist: [], pages.pack(source, target): []}
    jar, programs = _jvm_and_go(bench)
    parts[jar] = contents.of_jar(source)
    parts |= {seed: contents.of_program(seed, go) for seed in _seeds(bench, programs)}
    with step("Images"):
        made = list(_images(bench, wheel, jar, programs))
    parts |= {archive.path: contents.of_image(archive.path, source, go) for archive in made}
    digests = {archive.name: archive.digest for archive in made}
    with step("Chart"):
        named = [Part("oci", f"streamapp/{name}", digest) for name, digest in digests.items()]
        parts |= dict.fromkeys(_charts(bench, digests, publication, helm), named)
    plugins = {}
    for platform in plugin.PLATFORMS:
        with step(f"Plugin for {platform.name}"), _room(bench, f"plugin-{platform.name}") as room:
            plugins[platform] = plugin.build(source, wheel, platform, room, target)
    parts |= {archive: contents.of_plugin(archive) for archive in plugins.values()}
    (target / MANIFEST).write_text(plugin.krew_manifest(source, plugins, publication.files))
    with step("Bills of materials"):
        for artifact, found in parts.items():
            bills.write(artifact, found, source)
    artifacts = [*parts, target / MANIFEST, pages.instructions(source, target)]
    stated = statement.statement(source, artifacts, _tools(helm, go), publication.parameters())
    (target / statement.NAME).write_text(stated)
    checksums.write(target)


def _charts(bench: Bench, digests: Mapping[str, str], publication: Publication, helm: Path) -> Iterator[Path]:
    """Pack the chart, and the bundle of OLM if there is a registry from which it can start the images."""
    source, room = bench.source, bench.room("chart")
    notes = changelog.section((source.folder / "CHANGELOG.md").read_text(), source.version)
    if notes is None:
        notes = changelog.Section(source.version, "", "")
    told = artifact_hub.annotations(notes, digests, publication)
    packed = chart.pack(source, digests, told, helm, room, bench.target)
    yield packed
    if publication.registry:
        values = {**olm.VALUES, "images": {"registry": publication.registry}}
        objects = chart.rendered(packed, values, helm, source, room)
        images_of = {name: publication.image(name, digest) for name, digest in digests.items()}
        charts = source.folder / "charts"
        head = yaml.safe_load((charts / "streamapp-operator" / "Chart.yaml").read_text())
        files = olm.bundle(head, objects, images_of, (charts / "icon.svg").read_bytes(), source.epoch)
        made = bench.target / f"{olm.PACKAGE}-bundle-{source.version}.tar.gz"
        archives.tar_gz(made, {name: text.encode() for name, text in files.items()}, source.epoch)
        yield made


def _jvm_and_go(bench: Bench) -> tuple[Path, Mapping[tuple[str, str], Path]]:
    """Build the agent's jar and both programs; give the jar in the release, and programs by name and processor."""
    versions, images_of = bench.settings.versions, bench.source.folder / "operator" / "images"
    built = agent_jar(versions, bench.own, bench.source.folder / "agent") / AGENT_JAR
    jar = bench.target / f"streamapp-agent-{bench.source.version}.jar"
    shutil.copyfile(built, jar)
    programs = {
        (name, processor): init_program(images_of / folder, name, versions, bench.own, processor)
        for name, folder in (("seed", "seed"), ("bring", "agent"))
        for processor in images.PROCESSORS
    }
    return jar, programs


def _seeds(bench: Bench, programs: Mapping[tuple[str, str], Path]) -> Iterator[Path]:
    for processor in images.PROCESSORS:
        seed = bench.target / f"streamapp-seed-{bench.source.version}-linux-{processor}"
        shutil.copy(programs["seed", processor], seed)
        yield seed


def _images(bench: Bench, wheel: Path, jar: Path, programs: Mapping[tuple[str, str], Path]) -> Iterator[Archive]:
    source = bench.source
    folder = source.folder / "operator" / "images"
    licences = {f"licenses/{name}": source.folder / name for name in LICENCES}
    licences["licenses/GO-LICENSE"] = folder / "GO-LICENSE"
    layouts: dict[str, dict[str, Path]] = {"operator": {}, "seed": {}, "agent": {}}
    product = bench.room("product") / "streamapp"
    packages.unpack(wheel, product)
    packages.compile_for_image(product, "/opt/streamapp", system.PYTHON)
    for processor in images.PROCESSORS:
        room = bench.room(f"images-{processor}")
        base = _base(bench, processor, room)
        installed = room / "dependencies"
        packages.dependencies(source, "operator", UV_PLATFORMS[processor], system.PYTHON, installed, room / "log")
        packages.compile_for_image(installed, "/opt/dependencies", system.PYTHON)
        seed, bring = ({name: programs[name, processor]} for name in ("seed", "bring"))
        of = {
            "operator": {"dependencies": installed, "streamapp": product},
            "seed": {**seed, **licences},
            "agent": {**bring, AGENT_JAR: jar, **licences},
        }
        for name, context in of.items():
            image = Image(f"streamapp/{name}", source.version, folder / name / "Dockerfile", context)
            layout = room / name
            bases = {"BASE": base} if name == "operator" else {}
            images.build_layout(image, source, processor, bases, bench.settings.versions, layout)
            layouts[name][processor] = layout
    for name, by_processor in layouts.items():
        path = bench.target / f"streamapp-{name}-{source.version}.oci.tar"
        yield images.pack(name, by_processor, path, source.epoch)


def _base(bench: Bench, processor: str, room: Path) -> Path:
    """Build what the operator's image stands on, as a layout."""
    versions, packed, layout = bench.settings.versions, room / "system.tar", room / "base"
    system.root_file_system(bench.source, processor, versions, packed, room / "system.log")
    image = Image("streamapp/base", bench.source.version, bench.source.folder / BASE, {"system.tar": packed})
    images.build_layout(image, bench.source, processor, {}, versions, layout)
    return layout


@contextmanager
def _room(bench: Bench, name: str) -> Iterator[Path]:
    """Make a folder for one step and remove it after: the packages of a plugin take 400 megabytes."""
    folder = bench.room(name)
    yield folder
    shutil.rmtree(folder)


def _tools(helm: Path, go: Path) -> dict[str, str]:
    return {
        "go": tools.first_line(go, "version"),
        "helm": tools.first_line(helm, "version"),
        "java": tools.first_line("javac", "-version"),
        "maven": tools.first_line("mvn", "--version"),
        "buildah": tools.first_line("buildah", "--version"),
        "mmdebstrap": tools.first_line("mmdebstrap", "--version"),
        "uv": tools.first_line("uv", "--version"),
    }
