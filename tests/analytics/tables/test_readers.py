"""Other programs read the newest version alone, each row once."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
import pytest

from streamapp.analytics.__main__ import main
from streamapp.analytics.build import gold
from streamapp.analytics.tables.readers import FORMATS
from streamapp.analytics.tables.store import KEPT
from tests.analytics.support.handmade import DAY, demo, demo_gold

ROWS = {table: len(rows) for table, rows in demo_gold("x").items()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "it's here"
    demo(place)
    store = gold(place)
    # What an older run has left beside the files that count.
    old = store.folder / "g_hold_blame" / "run=older" / f"dt={DAY}"
    old.mkdir(parents=True)
    newest = next((store.folder / "g_hold_blame" / "run=by-hand").rglob("*.parquet"))
    (old / "part-0.parquet").write_bytes(newest.read_bytes())
    return place


def test_duckdb_counts_each_row_once(root: Path) -> None:
    duck = duckdb.connect()
    duck.execute(FORMATS["duckdb"](gold(root)))
    found = {table: duck.sql(f"SELECT count(*), max(dt) FROM {table}").fetchall()[0] for table in ROWS}  # noqa: S608
    assert found == {table: (rows, DAY) for table, rows in ROWS.items()}


def test_pyarrow_counts_each_row_once(root: Path) -> None:
    names: dict[str, Any] = {}
    exec(FORMATS["pyarrow"](gold(root)), names)  # noqa: S102 - the statements are what is tested
    assert {table: len(names[table]) for table in ROWS} == ROWS
    assert set(names["g_hold_blame"]["dt"].to_pylist()) == {DAY}


def test_the_command_names_the_files_and_refuses_what_has_no_folder(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", "--root", str(root)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [Path(file).parts[-3] for file in told["g_hold_blame"]] == ["run=by-hand"]
    assert main(["tables", "--root", str(root), "--for", "trino"]) == 0
    assert "map(varchar, double)" in capsys.readouterr().out
    assert main(["tables", "--root", str(root), "--for", "trino", "--layer", "silver"]) == 2
    assert main(["tables", "--root", str(tmp_path / "none")]) == 1
    assert "there are no tables in it" in capsys.readouterr().err


def counted(root: Path) -> int:
    rows: int = ds.dataset(root / "gold" / "current" / "g_hold_blame", partitioning="hive").count_rows()
    return rows


def test_a_folder_shows_the_newest_version_alone(root: Path) -> None:
    store = gold(root)
    for _ in range(KEPT + 2):
        store.publish(store.commit(store.current()))
        assert counted(root) == ROWS["g_hold_blame"]
    assert sorted(path.name for path in (store.folder / "views").iterdir()) == ["4", "5", "6"]
    assert {path.name for path in (store.folder / "current").iterdir()} == set(ROWS)


def test_a_copy_of_the_tables_can_be_gone_on_from(root: Path, tmp_path: Path) -> None:
    gold(root).publish(gold(root).current())
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    assert not (copy / "gold" / "current").is_symlink()
    store = gold(copy)
    store.publish(store.commit(store.current()))
    assert (counted(copy), (store.folder / "current").is_symlink()) == (ROWS["g_hold_blame"], True)


def test_a_file_system_without_links_does_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(os, "symlink", refused)
    store = gold(root)
    for number in (2, 3):
        assert store.commit(store.current()).number == number
        store.publish(store.current())
        assert counted(root) == ROWS["g_hold_blame"]
    assert store.current().number == 3
