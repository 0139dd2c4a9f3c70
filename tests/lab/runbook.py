"""The commands of docs/runbooks.md, taken from the page, so that a page whose commands no longer work fails a test."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.build.cache import Cache
from lab.build.chart_tools import build_helm
from lab.clusters.cluster import Session
from lab.settings import REPOSITORY, Settings
from tests.lab.plugin import Ran

PAGE = REPOSITORY / "docs" / "runbooks.md"
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Runbook:
    """One section of the page, and who follows it: a user whose kubeconfig names the namespace of the application."""

    title: str
    environment: Mapping[str, str]
    names: Mapping[str, str]
    """What stands for each word in capitals of the page, such as `NAME`."""

    @property
    def spans(self) -> list[str]:
        """Everything in code font, in the order of the page."""
        sections = PAGE.read_text().split("\n## ")
        (own,) = [section for section in sections if section.partition("\n")[0] == self.title]
        return _CODE.findall(own)

    def command(self, begin: str) -> str:
        """Give the one command of the section that begins so."""
        (found,) = {span for span in self.spans if span.startswith(begin)}
        for word, name in self.names.items():
            found = re.sub(rf"\b{word}\b", name, found)
        return found

    def run(self, begin: str) -> Ran:
        """Run that command as it stands there, in a shell, and show what it says."""
        return self.shell(self.command(begin))

    def shell(self, command: str) -> Ran:
        """Run a command as this user."""
        return shell(command, self.environment)


def shell(script: str, environment: Mapping[str, str], folder: Path | None = None) -> Ran:
    """Run a script that ends at its first failure, and show what it says."""
    ran = subprocess.run(
        ("bash", "-e", "-o", "pipefail", "-c", script),
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    print(f"$ {script}\n{ran.stdout}{ran.stderr}[{ran.returncode}]\n")  # noqa: T201 -- what the reader would see
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def reader(session: Session, namespace: str, place: Path) -> dict[str, str]:
    """Give the environment of a user with the plugin and Helm on the PATH, whose kubeconfig names a namespace."""
    settings = Settings.from_environment()
    helm = build_helm(settings.versions, Cache(settings.cache))
    kubeconfig = place / "kubeconfig"
    kubeconfig.write_bytes(Path(session.environment["KUBECONFIG"]).read_bytes())
    set_namespace = ("kubectl", "config", "set-context", "--current", f"--namespace={namespace}")
    path = os.pathsep.join((str(Path(sys.executable).parent), str(helm), session.environment["PATH"]))
    environment = {**session.environment, "PATH": path, "KUBECONFIG": str(kubeconfig)}
    subprocess.run(set_namespace, env=environment, check=True, capture_output=True)
    return environment
