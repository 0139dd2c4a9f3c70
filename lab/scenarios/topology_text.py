"""What the demo application says of its topology: the text for `spec.topology`, from the application itself.

Called by the scenarios of the operator. The text comes from the very jars that the image holds, run on this machine:
describing needs no broker and no cluster.
"""

import os
import subprocess

from lab.build.cache import Cache
from lab.build.maven import package
from lab.build.plan import COUNTER
from lab.build.toolchains import java_home
from lab.errors import LabError
from lab.scenarios.demo_application import DemoApplication
from lab.settings import Settings

_MAIN = "dev.streamapp.examples.counter.Counter"
_TIMEOUT_SECONDS = 60


def topology_text(application: DemoApplication, settings: Settings) -> str:
    """Give the text of `Topology#describe()` with the application's shape and topics. Raises LabError."""
    jars = package(COUNTER, settings.versions, Cache(settings.cache))
    command = [
        str(java_home(settings.versions) / "bin" / "java"),
        "-cp",
        f"{jars}/counter.jar:{jars}/lib/*",
        _MAIN,
        "describe",
    ]
    try:
        described = subprocess.run(
            command,
            # A pod has a host name, under which a static member joins.
            env={"PATH": os.environ.get("PATH", ""), "HOSTNAME": "describe", **application.environment},
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        raise LabError(
            f"topology of {application.application_id}: cannot be described",
            error.stderr.strip() or f"exit code {error.returncode}",
            "see the settings of examples/counter/README.md",
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(
            f"topology of {application.application_id}: cannot be described", str(error), "check the Java of the lab"
        ) from error
    return described.stdout
