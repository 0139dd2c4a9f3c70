"""The record is taken from every pod of the operator, by the command that users are told; what fails is named."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.errors import LabError
from lab.scenarios.record.flight_record import take
from tests.lab_unit.stand_ins import StandIns


def kubectl(folder: Path, *, fails: bool = False, is_empty: bool = False) -> tuple[Kubectl, StandIns]:
    """One that knows two pods, each with a record of its own."""
    programs = StandIns(folder)
    pods = [{"metadata": {"name": name}} for name in ("operator-a", "operator-b")]
    (folder / "pods").write_text(json.dumps({"items": pods}))
    for name in ("operator-a", "operator-b"):
        with tarfile.open(folder / f"{name}.tar", "w") as tar:
            if not is_empty:
                content = gzip.compress(b'{"seq": 0}\n')
                entry = tarfile.TarInfo(f"2026-11-21/{name}_1-000000000000.jsonl.gz")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    failure = "echo no such container >&2; exit 3" if fails else f'cat "{folder}/$4.tar"'
    programs.put("kubectl", f'case "$1" in get) cat {folder}/pods;; exec) {failure};; esac')
    return Kubectl(Session((), {"PATH": programs.path})), programs


def test_every_pod_is_asked_and_both_records_come_together(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    found = take(kubectl(tmp_path / "bin")[0], tmp_path / "record")
    assert [path.name for path in found] == [
        "operator-a_1-000000000000.jsonl.gz",
        "operator-b_1-000000000000.jsonl.gz",
    ]


def test_a_pod_that_does_not_give_it_is_named_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    with pytest.raises(LabError, match="flight record of operator-a: not taken") as told:
        take(kubectl(tmp_path / "bin", fails=True)[0], tmp_path / "record")
    assert told.value.why == "no such container"
    assert "streamapp.controller.record.archive" in told.value.next_step


def test_no_record_at_all_is_an_error_with_what_to_look_at(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    with pytest.raises(LabError, match="no pod of the operator has any") as told:
        take(kubectl(tmp_path / "bin", is_empty=True)[0], tmp_path / "record")
    assert "record.enabled" in told.value.next_step
