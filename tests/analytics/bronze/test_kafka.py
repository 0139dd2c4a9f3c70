"""The way to the topic says what is missing before Spark starts."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkException

from streamapp.analytics.__main__ import main
from streamapp.analytics.bronze import kafka
from streamapp.analytics.bronze.kafka import JARS_VARIABLE, Topic, connector_jars, ingest_topic, properties_in
from streamapp.analytics.errors import AnalyticsError


def test_missing_jars_are_named_with_the_way_to_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(JARS_VARIABLE, raising=False)
    arguments = ["ingest", "--kafka", "broker:9092", "--root", str(tmp_path / "t")]
    assert main(arguments) == 1
    assert capsys.readouterr().err.splitlines()[:2] == [
        "error: Spark's Kafka connector",
        "cause: pyspark does not bring it, and no folder is named",
    ]
    assert main([*arguments, "--jars", str(tmp_path)]) == 1
    assert "cause: no spark-sql-kafka-*.jar is in it" in capsys.readouterr().err
    assert not (tmp_path / "t").exists()


def test_files_and_a_topic_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--kafka", "b:1", str(tmp_path)], []):
        assert main(["ingest", *arguments, "--root", str(tmp_path)]) == 2
        assert "one of them" in capsys.readouterr().err


def test_jars_come_from_the_option_first_and_then_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        for jar in ("spark-sql-kafka-0-10_2.13-4.2.0.jar", "kafka-clients-3.9.2.jar"):
            (tmp_path / name / jar).touch()
    monkeypatch.setenv(JARS_VARIABLE, str(tmp_path / "other"))
    assert connector_jars(None).count(str(tmp_path / "other")) == 2
    assert connector_jars(tmp_path / "one").count(str(tmp_path / "one")) == 2
    with pytest.raises(AnalyticsError, match=JARS_VARIABLE):
        connector_jars(tmp_path)


def test_each_topic_of_each_cluster_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    places = {Topic(*one).checkpoint(tmp_path) for one in (("a:1", "t"), ("b:1", "t"), ("a:1", "u"), ("a:1", "t"))}
    assert len(places) == 3
    made_anew = {Topic("a:1", "t", identity=one).checkpoint(tmp_path) for one in ("", "x", "y")}
    assert len(made_anew | places) == 5
    assert {place.parent for place in places} == {tmp_path / "kafka"}
    assert "/" not in Topic("a:1", "../t").checkpoint(tmp_path).name


def test_properties_are_read_as_a_mounted_secret_has_them(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "security.protocol").write_text("SASL_SSL\n")
    assert properties_in(tmp_path) == {"security.protocol": "SASL_SSL"}
    assert properties_in(None) == {}
    with pytest.raises(AnalyticsError, match="a file for each property"):
        properties_in(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("why", "kind", "told"),
    [
        ("java.io.IOException: No space left on device", PySparkException, "^java.io.IOException: No space left"),
        (
            "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized",
            AnalyticsError,
            "^topic t at b:1: TopicAuthorizationException: Not authorized .look at the broker",
        ),
    ],
)
def test_a_disk_that_is_full_is_not_taken_for_a_topic_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, why: str, kind: type[Exception], told: str
) -> None:
    ingest, lines, taken = MagicMock(), MagicMock(), []
    ingest.take.side_effect = PySparkException(why)

    def each(take: Callable[[MagicMock, int], None]) -> MagicMock:
        taken.append(take)
        return lines

    def ran() -> None:
        batch = MagicMock()
        batch.persist.return_value.isEmpty.return_value = False
        try:
            taken[0](batch, 0)
        except PySparkException as error:
            raise PySparkException(f"[STREAM_FAILED] Query terminated with exception: {error}") from error

    lines.writeStream.foreachBatch = each
    lines.option.return_value.trigger.return_value.start.return_value.awaitTermination = ran
    monkeypatch.setattr(kafka, "_lines", lambda *_: lines)
    monkeypatch.setattr(kafka, "identified", lambda _, topic: topic)
    with pytest.raises(kind, match=told):
        ingest_topic(ingest, Topic("b:1", "t"))
