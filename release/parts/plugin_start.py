"""Runs before the command line in the packed plugin: it refuses a Python that has no native modules in there.

Called by shiv's start with the folder of the packages. Another Python would fail on its first import, with a stack
trace that does not name the cause.
"""

import sys
import sysconfig

site_packages = globals().get("site_packages")
NATIVE = str(sysconfig.get_config_var("EXT_SUFFIX"))
"""What the name of a native module ends with for this Python, on this platform."""

if site_packages is not None:
    made_for = sorted(path.name.partition(".")[2].removesuffix(".so") for path in site_packages.glob("yarl/*.so"))
    if NATIVE.strip(".").removesuffix(".so") not in made_for:
        sys.exit(
            "kubectl-streamapp: this Python is {}.{} on {}\n".format(*sys.version_info[:2], sysconfig.get_platform())
            + f"  cause: this file has native modules for {', '.join(made_for)}\n"
            + "  next:  install the archive of your platform, and have one of these Pythons as python3 in PATH"
        )
    if sys.argv[0].rpartition("/")[2].startswith("kubectl_complete-"):
        from streamapp.cli.__main__ import complete

        sys.exit(complete())
