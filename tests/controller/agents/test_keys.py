"""The key file: what is read, and what is said where it cannot be."""

from pathlib import Path

import pytest

from streamapp.controller.agents.keys import KeyFile, NoKeys
from streamapp.wire.agent_token import accepted

FIRST, SECOND = b"a" * 32, b"b" * 64


@pytest.mark.parametrize(
    ("content", "keys"),
    [(FIRST, (FIRST,)), (FIRST + b"\n", (FIRST,)), (FIRST + b"\r\n" + SECOND + b"\n\n", (FIRST, SECOND))],
)
def test_keys_stand_in_lines(tmp_path: Path, content: bytes, keys: tuple[bytes, ...]) -> None:
    path = tmp_path / "keys"
    path.write_bytes(content)
    found = KeyFile(str(path))
    assert (found.read(), found.accepted("uid")) == (keys, accepted(keys, "uid"))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "has 0 lines and must have 1 to 2"),
        (b"\n".join([FIRST] * 3), "has 3 lines and must have 1 to 2"),
        (FIRST + b"\nshort", "has a line of less than 32 characters"),
    ],
)
def test_what_cannot_be_used_is_named_without_what_it_holds(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "keys"
    if content is not None:
        path.write_bytes(content)
    found = KeyFile(str(path))
    assert found.read() == NoKeys(
        f"the operator has no key for agents: {path}, which STREAMAPP_AGENT_KEY_FILE names, {why}; "
        "see docs/agents.md (Keys)"
    )
    assert found.accepted("uid") == ""


def test_a_key_that_changes_is_used_at_once(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(FIRST)
    keys = KeyFile(str(path))
    assert keys.read() == (FIRST,)
    path.write_bytes(SECOND + b"\n" + FIRST)
    assert keys.read() == (SECOND, FIRST)
