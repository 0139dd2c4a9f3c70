"""The operator: `python -m streamapp`, and with `check` whether it could work here.

With `prepare-uninstall` it does the last things before it is uninstalled. Settings come from the environment, see
`streamapp.controller.settings`.
"""

import asyncio
import gc
import os
import sys

from streamapp.controller import log, permission_check
from streamapp.controller.lifecycle import run
from streamapp.controller.process import CannotStartError
from streamapp.controller.settings import InvalidSettingError, Settings
from streamapp.controller.uninstall import command as prepare_uninstall
from streamapp.kube.client.deep_objects import allow_deep_objects
from streamapp.kube.client.errors import KubeError

SWITCH_SECONDS = 0.0005
"""How long a thread that decodes a large answer keeps the event loop waiting each time: a tenth of Python's default."""


def main() -> int:
    """Run until told to stop; give the exit code."""
    allow_deep_objects()
    try:
        if sys.argv[1:2] == ["check"]:
            return permission_check.main(sys.argv[2:], os.environ)
        if sys.argv[1:2] == ["prepare-uninstall"]:
            return prepare_uninstall.main(os.environ)
        settings = Settings.from_environment(os.environ)
        settings.require_images()
        log.set_up(settings.log_level)
        # kopf asks for the user's name, which a user ID out of a namespace's range (OpenShift) does not have.
        os.environ.setdefault("LOGNAME", "streamapp-operator")
        # What is loaded stays: else each full collection looks through it, and all applications wait meanwhile.
        gc.freeze()
        sys.setswitchinterval(SWITCH_SECONDS)
        asyncio.run(run(settings))
    except (InvalidSettingError, CannotStartError, KubeError) as error:
        sys.stderr.write(f"streamapp-operator: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
