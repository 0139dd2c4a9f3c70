"""A user with the files of a release, the makers' public keys and its INSTALL.md, on a cluster of their own.

`python -m tests.lab.release_files` makes those files first, since the lab has no network.

Every command comes from that page as it stands there, in its order; only registry, folders and the number of the newer
chart are the user's. The newer release has the same images: test_85 replaces an operator by another version.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.node.namespaces import INSIDE
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import remove_all, unique_name
from lab.scenarios.stream_app import StreamAppScenario
from lab.settings import REPOSITORY, Settings
from release.numbering import version_of
from tests.lab.plugin import Ran
from tests.lab.registry import ADDRESS, registry
from tests.lab.release_files import release_of_head
from tests.lab.runbook import reader, shell
from tests.release.small import a_key, an_openpgp_key

pytestmark = [
    pytest.mark.release,
    pytest.mark.timeout(3 * 3600),
    pytest.mark.skipif(INSIDE not in os.environ, reason="the registry is on the embedded lab's own loopback address"),
]

NEWER = "NEWER"
"""What the page calls the number of the release to upgrade to."""
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPERATOR = operator_deployment.NAMESPACE
DEFINITION = "streamapps.streamapp.dev"


@dataclass(frozen=True)
class Stranger:
    """Someone who has one folder, and what they were told."""

    folder: Path
    environment: dict[str, str]
    app: StreamAppScenario

    def follow(self, title: str, block: int = 0) -> Ran:
        """Run a block of commands of a section of the page."""
        sections = (self.folder / "INSTALL.md").read_text().split("\n## ")
        (section,) = [each for each in sections if each.partition("\n")[0] == title]
        script = _BLOCK.findall(section)[block]
        for written, own in (
            ("registry.example/streamapp", f"{ADDRESS}/streamapp"),
            ("--preserve-digests", "--preserve-digests --dest-tls-verify=false"),
            ("/usr/local/bin/", f"{self.folder.parent}/bin/"),
            (f"streamapp-operator-{NEWER}.tgz", f"../newer/streamapp-operator-{NEWER}.tgz"),
        ):
            script = script.replace(written, own)
        return shell(script, self.environment, self.folder)

    def ask(self, command: str) -> Ran:
        """Run a command of their own."""
        return shell(command, self.environment, self.folder)

    def runs(self) -> dict[str, tuple[str, int]]:
        """Each pod of the application, with its UID and the restarts of its container."""
        return {
            pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
            for pod in self.app.pods(f"{demo_application.SELECTOR}")
        }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay a signed release and both public keys into a folder that has nothing else."""
    place = tmp_path_factory.mktemp("stranger")
    folder = place / "release"
    shutil.copytree(release_of_head(Settings.from_environment()), folder)
    own, openpgp = a_key(tmp_path_factory.mktemp("key")), an_openpgp_key(tmp_path_factory.mktemp("g"))
    keys = ("--key", str(own.private), "--openpgp-key", str(openpgp.private))
    subprocess.run((sys.executable, "-m", "release", "sign", str(folder), *keys), cwd=REPOSITORY, check=True)
    shutil.copy(own.public, place / "release.pub")
    shutil.copy(openpgp.public, place / "release.asc")
    return folder


@pytest.fixture(scope="module")
def stranger(
    session: Session, kubectl: Kubectl, bootstrap: str, files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stranger]:
    """Take the operator and its definition away, run an application as a plain StatefulSet, and serve a registry."""
    assert shutil.which("skopeo"), "apt-get install skopeo"
    was_there = operator_deployment.is_there(kubectl)
    operator_deployment.remove(kubectl)
    if kubectl.run("get", "crd", DEFINITION, "--ignore-not-found", "--output=name"):
        assert kubectl.json("get", "streamapps", "--all-namespaces")["items"] == []
        kubectl.run("delete", "crd", DEFINITION)
    settings = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
    application = DemoApplication(unique_name("stranger"), settings, 5_000, 50, "t-stranger", cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    demo_application.preload(kubectl, application)
    demo_application.start(kubectl, application, 3)
    bins, newer = files.parent / "bin", files.parent / "newer"
    bins.mkdir()
    newer.mkdir()
    environment = reader(session, application.namespace, tmp_path_factory.mktemp("user"))
    environment["PATH"] = f"{bins}{os.pathsep}{environment['PATH']}"
    one = Stranger(files, environment, StreamAppScenario(kubectl, application))
    with registry(session, tmp_path_factory.mktemp("registry")):
        yield one
    operator_deployment.remove(kubectl)
    remove_all(kubectl, bootstrap, [application])
    if was_there:
        operator_deployment.deploy(kubectl)


def test_the_release_is_checked(stranger: Stranger) -> None:
    assert "Verified OK" in stranger.follow("Check a release").out
    assert "Chart Hash Verified" in stranger.follow("Check a release", 1).out
    checked = stranger.follow("Check a release", 2)
    assert (checked.code, {line[:3] for line in checked.out.splitlines()}) == (0, {"ok "})


def test_the_plugin_and_the_operator_are_installed_from_it(stranger: Stranger, kubectl: Kubectl) -> None:
    assert stranger.follow("Install the plugin").out.startswith("Usage: kubectl streamapp")
    installed = stranger.follow("Install from a release")
    assert installed.code == 0
    assert "nothing lacks" in installed.out
    for pod in operator_deployment.pods(kubectl).values():
        assert pod["spec"]["containers"][0]["image"].startswith(f"{ADDRESS}/streamapp/operator@sha256:")
    assert version_of(REPOSITORY) in stranger.ask("kubectl streamapp --version").out


def test_a_running_statefulset_is_adopted_and_scaled_down(stranger: Stranger) -> None:
    before = stranger.runs()
    assert len(before) == 3
    assert stranger.ask("kubectl streamapp adopt statefulset/counter --yes").code == 0
    stranger.app.wait_until_converged(3)
    assert stranger.runs() == before
    stranger.app.scale(2)
    stranger.app.wait_until_converged(2)
    assert stranger.runs() == {name: run for name, run in before.items() if name != "counter-2"}


def test_an_upgrade_and_a_rollback_restart_no_pod_of_the_application(stranger: Stranger, kubectl: Kubectl) -> None:
    before = stranger.runs()
    packed = next(stranger.folder.glob("streamapp-operator-*.tgz"))
    number = version_of(REPOSITORY)
    newer = stranger.ask(
        f"cd ../newer; tar --extract --file {packed}; "
        f"sed -i 's/^\\(version\\|appVersion\\): {number}$/\\1: 9.9.9/' streamapp-operator/Chart.yaml; "
        f"helm package streamapp-operator; mv streamapp-operator-9.9.9.tgz streamapp-operator-{NEWER}.tgz"
    )
    assert newer.code == 0
    assert stranger.follow("Upgrade and downgrade").code == 0
    history = stranger.ask(f"helm history streamapp-operator --namespace {OPERATOR}").out
    assert ["9.9.9" in line for line in history.splitlines()[1:]] == [False, True, False]
    kubectl.wait_for_rollout(OPERATOR, "deployment/streamapp-operator")
    stranger.app.scale(3)
    stranger.app.wait_until_converged(3)
    assert {name: run for name, run in stranger.runs().items() if name in before} == before


def test_the_application_is_given_back_and_nothing_of_the_operator_is_left(
    stranger: Stranger, kubectl: Kubectl
) -> None:
    before = stranger.runs()
    assert stranger.ask("kubectl streamapp disown counter --yes").code == 0
    assert stranger.follow("Uninstall").code == 0
    removed = stranger.follow("Uninstall", 1)
    assert removed.code == 0
    assert "No resources found" in removed.err
    assert stranger.runs() == before
    kinds = (
        "crd,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,namespaces"
    )
    assert [name for name in kubectl.run("get", kinds, "--output=name").split() if "streamapp" in name] == []
