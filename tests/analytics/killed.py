"""A run of the whole pipeline that dies, for real, at the end of a stage: what `test_build` starts.

Run as `python -m tests.analytics.killed RECORD ROOT STAGE`.
"""

import os
import signal
import sys
from pathlib import Path

from streamapp.analytics.build import Build
from streamapp.analytics.ingest import Ingest, bronze
from streamapp.analytics.progress import Stages
from streamapp.analytics.session import open_session
from tests.analytics.conftest import ENGINE, NOW


class Deadly(Stages):
    """Ends the process without a word when a stage is over."""

    def ended(self, name: str) -> None:
        if name == sys.argv[3]:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Ingest and build."""
    spark = open_session(ENGINE)
    record, root = Path(sys.argv[1]), Path(sys.argv[2])
    stages = Deadly()
    Ingest(spark, bronze(root), stages, NOW).run([record])
    Build(spark, root, stages).run()


if __name__ == "__main__":
    main()
