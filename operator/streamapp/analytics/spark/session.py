"""The Spark session that every run uses, embedded or on a cluster: what Spark leaves open is settled here.

Called by the command line and by tests. Sets nothing that a given configuration already sets.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.spark.cluster import check_master

MIN_JAVA = 17
LOOPBACK = "127.0.0.1"
ARCHIVE_SECONDS = 300
"""Longest time that the JVM may take to write its archive; about ten."""

NO_JAVA = AnalyticsError(
    "Spark",
    "its Java process ended in the middle of the run, as one does that is killed for the memory it takes",
    "nothing counts of what was not finished: start it again; --memory is its heap, beside which it needs 1 GiB more",
)
HEAP = "java.lang.OutOfMemoryError"
"""What Java calls a heap that is too small."""


QUICK = {
    # What is run once over few rows is over before it is compiled, or before its plan is better.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class Engine:
    """Where and how Spark runs."""

    master: str = ""
    """Empty: what MASTER says, else all cores of this machine."""
    memory: str = "2g"
    """Heap of the driver, which computes everything when the master is local."""
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Of the machine, or of the cluster; two partitions are made for each."""
    archive: Path | None = None
    """AppCDS archive: used where it exists, written at the end of this run where it does not."""
    quick_start: bool = False
    """A smaller compiler and collector: for tests and small jobs, slower in long ones."""
    conf: Mapping[str, str] = field(default_factory=dict)


def cores_of(master: str) -> int:
    """Cores that a master has: of `local[N]` N, of any other those of this machine."""
    named = re.fullmatch(r"local\[(\d+)\]", master)
    return int(named[1]) if named else os.cpu_count() or 1


def spark_jars() -> list[Path]:
    """The jars that Spark itself loads, in order of their names."""
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    return sorted(Path(home, "jars").glob("*.jar"))


def _draft(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.new")


HUGE_METHODS = "-XX:+IgnoreUnrecognizedVMOptions -XX:-DontCompileHugeMethods"
"""Without it a JVM would interpret for ever what Spark generates for a table of many columns."""


LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
"""Before a session has a level, Spark goes by a file, and without one says a handful of warnings at each start."""
CODE_CACHE = "-XX:ReservedCodeCacheSize=240m"
"""What a JVM with all its compilers has for compiled code; with the first alone it has a fifth, and Spark fills it."""


def java_options(engine: Engine) -> str:
    """Options of the driver's JVM."""
    options = ["-Djava.net.preferIPv4Stack=true", HUGE_METHODS, CODE_CACHE, LOGGING]
    if engine.archive is not None:
        there = engine.archive.exists()
        how = f"SharedArchiveFile={engine.archive}" if there else f"ArchiveClassesAtExit={_draft(engine.archive)}"
        options += [f"-XX:{how}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    options += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"] if engine.quick_start else ["-XX:+UseParallelGC"]
    return " ".join(options)


def is_submitted() -> bool:
    """Whether `spark-submit` started this program: then its JVM runs already, with what the submission says."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def master_of(engine: Engine) -> str:
    """Where Spark runs; empty where a submission says it."""
    return engine.master or ("" if is_submitted() else os.environ.get("MASTER", "local[*]"))


def settings(engine: Engine) -> dict[str, str]:
    """What the session is configured with."""
    local = master_of(engine).startswith("local")
    bound = {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK} if local else {}
    # Java takes `jars/*` in the order of the folder, which a copy of it does not share, and an archive of classes is
    # good for one order only.
    ordered = {"spark.driver.extraClassPath": ":".join(map(str, spark_jars()))} if engine.archive is not None else {}
    return {
        **bound,
        **ordered,
        "spark.driver.memory": engine.memory,
        "spark.driver.extraJavaOptions": java_options(engine),
        "spark.executor.extraJavaOptions": HUGE_METHODS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.shuffle.partitions": str(min(200, 2 * engine.cores)),
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": "64m",
        # A run has more stages than the hundred whose code Spark keeps, and the next run in this JVM the same ones.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # Folders of many days are listed faster by the driver than by a job.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "4096",
        # Files of all kinds and days stay open side by side, so that nothing is sorted to split it.
        "spark.sql.maxConcurrentOutputFileWriters": "64",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        # Of a JVM that runs already; one of ours has its file.
        **({"spark.log.level": "ERROR"} if is_submitted() else {}),
        **(QUICK if engine.quick_start else {}),
        "spark.sql.warehouse.dir": str(Path(gettempdir()) / "streamapp-analytics-warehouse"),
        **engine.conf,
    }


def check_java() -> None:
    """See that there is a Java that Spark runs on.

    Raises:
        AnalyticsError: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME", "")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    needs = f"install Java {MIN_JAVA} or newer, or set JAVA_HOME to one"
    if java is None:
        where = f"JAVA_HOME is {home}, and there is no bin/java in it" if home else "there is no java on the PATH"
        raise AnalyticsError("Java", where, needs)
    told = subprocess.run([java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False)
    words = [line.split("=")[1].strip() for line in told.stderr.splitlines() if "java.specification.version " in line]
    version = words[0] if words else "unknown"
    if not version.isdecimal() or int(version) < MIN_JAVA:
        raise AnalyticsError(java, f"Spark needs Java {MIN_JAVA} or newer, this one is {version}", needs)


def check_user() -> None:
    """See that this user has a name: Spark asks Java for it, and says only that it is null.

    Raises:
        AnalyticsError: it has none, as in a container that runs as any number.
    """
    number = os.getuid()
    try:
        pwd.getpwuid(number)
    except KeyError:
        line = f"{number}:x:{number}:{os.getgid()}::/tmp:/usr/sbin/nologin"
        step = f"run as a user that has one, or add `{line}` to /etc/passwd, by a mounted file perhaps"
        raise AnalyticsError(f"user {number}", "it has no name in /etc/passwd, and Spark needs one", step) from None


def open_session(engine: Engine) -> SparkSession:
    """Start Spark, or take the session that runs already.

    Raises:
        AnalyticsError: no fit Java, no name of this user, or Spark cannot start; its message is the first line of
            Spark's own.
    """
    check_java()
    check_user()
    # Python workers start as whatever `python3` the PATH has, in a virtual environment often the wrong one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = master_of(engine)
    check_master(master)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    builder = SparkSession.builder.appName("streamapp-analytics")
    if master:
        builder = builder.master(master)
    try:
        for name, value in _unsaid(settings(engine), engine.conf).items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except (PySparkRuntimeError, PySparkException, Py4JError, OSError) as error:
        raise AnalyticsError("Spark", first_line(error), "look at Spark's own words above, and at --master") from error


def close_session(spark: SparkSession, engine: Engine) -> None:
    """Stop Spark and end its JVM: what that held is free, and an archive that it wrote at its end is in its place."""
    gateway = SparkContext._gateway  # noqa: SLF001 - nothing else knows the JVM's process
    spark.stop()
    if gateway is not None and gateway.proc is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(ARCHIVE_SECONDS)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - a later session needs another JVM
    if engine.archive is not None and _draft(engine.archive).exists():
        _draft(engine.archive).replace(engine.archive)


def _unsaid(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Our settings without those that a submission makes and the command line does not."""
    if not is_submitted():
        return dict(ours)
    SparkContext._ensure_initialized()  # noqa: SLF001 - it connects to the JVM that runs
    said = SparkConf()
    return {name: value for name, value in ours.items() if name in given or not said.contains(name)}


def first_line(error: BaseException) -> str:
    """What an error of Spark's says, without the stack traces that follow."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Py4J's own first line names the call that failed, the second one the exception.
    told = next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0] if lines else "")
    return (told or type(error).__name__)[:300]


def of_spark(error: Exception) -> AnalyticsError:
    """What went wrong in Spark, or with the process that it runs in."""
    if isinstance(error, ConnectionError) or (isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)):
        return NO_JAVA
    step = "nothing counts of what was not finished; with --debug all of Spark's words show"
    if HEAP in str(error):
        step = "nothing counts of what was not finished; give it more by --memory, in the chart by analytics.memory"
    return AnalyticsError("Spark", first_line(error), step)
