"""What must hold before a run works on a Spark cluster: a master that answers, workers, and one folder for all.

Called by the session and by the commands. Spark itself waits: a minute for a master, for ever for a worker; and where
workers write to a disk of their own, it finishes without an error and without their rows.
"""

import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLateError
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamapp.analytics.errors import AnalyticsError

STANDALONE: Final = "spark://"
ANSWER_SECONDS: Final = 5.0
"""Within which a machine must take a connection at the master's port."""
WORKER_SECONDS: Final = 120.0
"""Within which workers must have done a first small piece of work, unless told otherwise."""

NO_WORKER: Final = (
    "look at the master's page for workers with free cores and memory; --conf spark.executor.memory=1g and "
    "--conf spark.cores.max=2 ask for less, --wait waits longer; workers must be able to connect to this machine, too"
)


def check_master(master: str) -> None:
    """See that one of a standalone cluster's masters takes connections; other kinds of clusters are left to Spark.

    Raises:
        AnalyticsError: none does, or the address is not one.
    """
    if not master.startswith(STANDALONE):
        return
    why = ""
    for address in master.removeprefix(STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            step = f"write it as the master's page does: {STANDALONE}HOST:PORT"
            raise AnalyticsError(f"--master {master}", f"{address} is not a host and a port", step)
        try:
            socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
        except OSError as error:
            why += f"{'; ' if why else ''}{address}: {error.strerror or error}"
        else:
            return
    step = "see that it runs, that the address is the one at the head of its page, and that this machine may connect"
    raise AnalyticsError(f"Spark's master {master}", why, step)


def check_workers(spark: SparkSession, root: Path, seconds: float) -> None:
    """Let the workers of a cluster write a few rows under the root, and see that they arrive here.

    Raises:
        AnalyticsError: no worker began in time, they cannot write there, or what they write is not here.
    """
    master = str(spark.sparkContext.master)
    if master.startswith("local"):
        return
    probe = root / f".workers-{uuid4().hex}"
    rows = 4 * max(1, spark.sparkContext.defaultParallelism)
    work = spark.range(0, rows, 1, rows).write
    pool = ThreadPoolExecutor(1)
    try:
        pool.submit(work.parquet, str(probe)).result(seconds)
        arrived = sum(pq.read_metadata(file).num_rows for file in probe.glob("*.parquet"))
    except TooLateError:
        # Not only its jobs: on a slow machine the first one may begin after all were cancelled, and wait for ever.
        spark.stop()
        raise AnalyticsError(f"workers of {master}", f"none has done anything for {seconds:.0f} s", NO_WORKER) from None
    except (PySparkException, Py4JError) as error:
        lines = [line.strip() for line in str(error).splitlines() if "Exception" in line or "denied" in line]
        why = f"workers of {master} cannot write to it: {(lines[-1] if lines else str(error))[:300]}"
        raise AnalyticsError(str(root), why, "let the user that workers run as write there") from error
    finally:
        pool.shutdown(wait=True)
        shutil.rmtree(probe, ignore_errors=True)
    if arrived != rows:
        why = f"of {rows} rows that workers of {master} wrote there {arrived} are here: they see another folder"
        raise AnalyticsError(str(root), why, "mount one shared folder under this path here and on every worker")
