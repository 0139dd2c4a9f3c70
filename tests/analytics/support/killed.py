"""A run of the whole pipeline that dies, for real: at the end of a stage, or while one writes. `test_build` starts it.

Run as `python -m tests.analytics.support.killed RECORD ROOT STAGE [amid]`. At the end of a stage it dies alone: the
Spark of whoever started it lives on, as a cluster's does. Amid one it has a Spark of its own, and takes that with it.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streamapp.analytics.bronze.ingest import Ingest, bronze
from streamapp.analytics.build import Build
from streamapp.analytics.progress import Stages
from streamapp.analytics.spark.session import open_session
from tests.analytics.conftest import ENGINE, NOW

AMID = "amid"
GATEWAY = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


def environment(spark: SparkSession) -> dict[str, str]:
    """What a process needs in its environment to use the same Spark."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    told = gateway.gateway_parameters
    return dict(zip(GATEWAY, (str(told.port), str(told.auth_token)), strict=True))


def _session() -> SparkSession:
    if GATEWAY[0] not in os.environ:
        return open_session(ENGINE)
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    java = gateway.jvm.org.apache.spark
    context = java.api.java.JavaSparkContext.fromSparkContext(java.SparkContext.getOrCreate())
    conf = SparkConf(_jvm=gateway.jvm, _jconf=context.getConf())
    return SparkSession(SparkContext(gateway=gateway, jsc=context, conf=conf))


class Deadly(Stages):
    """Ends the process without a word."""

    def __init__(self, stage: str, root: Path, *, amid: bool) -> None:
        super().__init__()
        self._stage, self._root, self._amid = stage, root, amid

    @contextmanager
    def shown(self, name: str) -> Iterator[None]:
        """Have it die while this goes on, if that is asked for."""
        if self._amid and name == self._stage:
            Thread(target=self._die_over_a_draft, daemon=True).start()
        yield

    def _die_over_a_draft(self) -> None:
        while not any(self._root.glob("*/*/run=*/_temporary/**/*.parquet")):
            time.sleep(0.001)
        os.killpg(0, signal.SIGKILL)

    def ended(self, name: str) -> None:
        """Die."""
        if name == self._stage and not self._amid:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Ingest and build."""
    spark = _session()
    record, root = Path(sys.argv[1]), Path(sys.argv[2])
    stages = Deadly(sys.argv[3], root, amid=AMID in sys.argv[4:])
    Ingest(spark, bronze(root), stages, NOW).run([record])
    Build(spark, root, stages).run()


if __name__ == "__main__":
    main()
