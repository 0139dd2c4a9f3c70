"""A build whose insight cannot be written has its tables all the same."""

from pathlib import Path

import pytest

from streamapp.analytics import cli


@pytest.mark.parametrize("error", [ValueError("p10: less than 0"), OSError("no space left")])
def test_insight_that_cannot_be_written_ends_no_command(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> list[Path]:
        raise error

    monkeypatch.setattr(cli, "write_insight", refuse)
    cli._print_insight(tmp_path)
    assert f"no insight is written, the tables are whole: {error}" in capsys.readouterr().err
