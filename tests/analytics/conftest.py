"""One Spark for all tests of the pipeline, and one made-up record that went through it as a whole."""

import gzip
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamapp.analytics.bronze.ingest import Ingest, Ingested, bronze
from streamapp.analytics.build import Build, Built
from streamapp.analytics.progress import Stages
from streamapp.analytics.spark.session import Engine, open_session
from streamapp.analytics.synthetic.fleet import Fleet
from streamapp.analytics.synthetic.generate import write_record
from tests.analytics.support.disorder import disorder
from tests.analytics.support.histories import TOLD, told

ODD = 12
"""Applications to which everything odd happens, beside the fleet."""
NOW = datetime(2026, 12, 1, tzinfo=UTC)
FLEET = Fleet(apps=4, days=2, tasks=12, file_seconds=7200)
ENGINE = Engine(master="local[2]", cores=1, memory="1g", quick_start=True)


@dataclass(frozen=True)
class Whole:
    """A record, and the tables that were made of it in one go."""

    record: Path
    files: tuple[Path, ...]
    root: Path
    built: Built


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with warnings.catch_warnings():
        # A session outlives the test that happens to start it, and so do its sockets.
        warnings.simplefilter("ignore", ResourceWarning)
        session = open_session(ENGINE)
        yield session
        session.stop()


@pytest.fixture(scope="session")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    place = tmp_path_factory.mktemp("whole")
    files = [path for path, _ in write_record(FLEET, place / "record")]
    for number, path in enumerate(disorder(place / "record", seed=1, apps=ODD)):
        files.insert(2 + 5 * number, path)
    root = place / "tables"
    Ingest(spark, bronze(root), Stages(), NOW).run([place / "record"])
    return Whole(place / "record", tuple(files), root, Build(spark, root, Stages()).run())


@pytest.fixture(scope="session")
def drawn(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ingested]:
    """The tables of histories drawn by hand, each told several times, in files with odd names and one torn line."""
    place = tmp_path_factory.mktemp("histories")
    # Characters that Spark takes for patterns, that it encodes, and that it does not; a copy that has only begun.
    record = place / "dt=2026-11-05 [1] {a,b} jürgen+100%"
    record.mkdir()
    (place / "link").symlink_to(record)
    texts = told("n")
    texts.insert(3, '{"kind": "sample", torn')
    texts.append(json.dumps({**json.loads(texts[-1]), "seq": 999, "namespace": "novel", "novel": {"a": [1]}}))
    others = [text for namespace in TOLD if namespace != "n" for text in told(namespace)]
    (record / "record.jsonl.gz").write_bytes(gzip.compress(("\n".join(texts) + "\n").encode()))
    (record / "told-again.jsonl.gz").write_bytes(gzip.compress(("\n".join(others) + "\n").encode()))
    (record / "without-lines.jsonl.gz").write_bytes(gzip.compress(b""))
    (record / "begun.jsonl.gz").touch()
    (record / ".draft.jsonl.gz").write_text("torn")
    done = Ingest(spark, bronze(place), Stages(), NOW, most_bad=0.5).run([place / "link"])
    Build(spark, place, Stages()).run()
    return place, done
