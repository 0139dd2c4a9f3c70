"""What the last release wrote, read by today's code: an upgrade restarts no pod, and continues holds and steps.

`release/baseline` has the hashes of its pod templates, a hold record with every part, and the names of its reasons,
which stand in hold records.
"""

import json

import pytest

from streamapp.core.facts.hold_annotation import encode
from streamapp.core.reasons import Reason
from tests.release.baseline import HASHES, KINDS, REASONS, RECORD, hash_of, record


@pytest.mark.parametrize("kind", KINDS)
def test_an_upgrade_makes_the_template_of_the_last_release(kind: str) -> None:
    """If it must differ: name the restart in the changelog, and write the new hashes in the same commit."""
    assert {kind: hash_of(kind)} == {kind: json.loads(HASHES.read_text())[kind]}


@pytest.mark.parametrize("kind", KINDS)
def test_newer_images_of_seed_and_agent_restart_nothing(kind: str) -> None:
    assert hash_of(kind, seed_image="seed:2", agent_image="agent:2") == hash_of(kind)


def test_a_hold_record_of_the_last_release_is_read_and_written_alike() -> None:
    read = record()
    assert None not in (read.hold, read.step, read.standbys)
    assert encode(read) == RECORD.read_text().strip()


def test_every_reason_of_the_last_release_is_known() -> None:
    """A hold whose reason has another name now could not be read."""
    assert set(REASONS.read_text().split()) - {reason.name for reason in Reason} == set()
