"""Commands that read the broker themselves: in the embedded lab they must run inside its network namespace."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from lab.clusters.choice import chosen
from lab.clusters.cluster import Session
from lab.settings import Settings


@contextmanager
def in_node_namespace() -> Iterator[Session]:
    """Give a session in which this very process reaches the cluster.

    If the way in leads through other namespaces, the same command line is run again in there, and this process ends
    with that one's exit code.
    """
    with chosen(Settings.from_environment()).session() as session:
        if session.prefix:
            again = (*session.prefix, sys.executable, "-m", "lab", *sys.argv[1:])
            sys.exit(subprocess.run(again, env=session.environment, check=False).returncode)
        yield session
