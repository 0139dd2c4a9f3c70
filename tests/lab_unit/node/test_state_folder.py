"""The lab removes what is in its state folder, so it takes only a folder that is its own."""

from pathlib import Path

import pytest

from lab.errors import LabError
from lab.node import namespaces
from lab.node.layout import Layout
from lab.settings import Settings


def test_a_folder_with_somebody_elses_files_is_refused_and_kept(tmp_path: Path) -> None:
    precious = tmp_path / "etc" / "precious"
    precious.parent.mkdir()
    precious.write_text("mine")
    with pytest.raises(LabError) as raised:
        namespaces.take_lock(Layout(tmp_path))
    assert raised.value.what == f"state folder {tmp_path}: not the lab's"
    assert "STREAMAPP_LAB_STATE" in raised.value.next_step
    assert precious.read_text() == "mine"


def test_folders_are_the_same_wherever_a_command_is_started() -> None:
    settings = Settings.from_environment({"STREAMAPP_LAB_STATE": "here", "STREAMAPP_LAB_CACHE": "~/there"})
    assert settings.state == Path.cwd() / "here"
    assert settings.cache == Path.home() / "there"
