"""What the last release wrote, read by today's code: an upgrade restarts no pod, and continues holds and steps.

`release/baseline` has the hashes of its pod templates, a hold record with every part, and the names of its reasons,
which stand in hold records.
"""

import json
from typing import Any

import pytest

from lab.settings import REPOSITORY
from streamapp.api.names import TEMPLATE_HASH
from streamapp.api.objects.manifests import Installation, statefulset
from streamapp.api.validation.parse import StreamApp, parse
from streamapp.core.facts.hold_annotation import decode, encode
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.reasons import Reason
from tests.streamapps import ABSENT, stored

BASELINE = REPOSITORY / "release" / "baseline"
HASHES = BASELINE / "template-hashes.json"
KINDS: dict[str, dict[str, Any]] = {
    "without state": {"spec.state": ABSENT},
    "with state": {},
    "with state and an init container": {"spec.template.spec.initContainers": [{"name": "first", "image": "first:1"}]},
    "with state and the agent": {"spec.agent": {"enabled": True}},
}


def hash_of(kind: str, **images: str) -> str:
    app = parse(stored(KINDS[kind]))
    assert isinstance(app, StreamApp)
    made = {"seed_image": "seed:1", "agent_image": "agent:1", **images}
    installation = Installation(name="ours", accepted=lambda _: "0" * 64, **made)
    return str(statefulset(app, installation)["metadata"]["annotations"][TEMPLATE_HASH])


@pytest.mark.parametrize("kind", KINDS)
def test_an_upgrade_makes_the_template_of_the_last_release(kind: str) -> None:
    """If it must differ: name the restart in the changelog, and write the new hashes in the same commit."""
    assert {kind: hash_of(kind)} == {kind: json.loads(HASHES.read_text())[kind]}


@pytest.mark.parametrize("kind", KINDS)
def test_newer_images_of_seed_and_agent_restart_nothing(kind: str) -> None:
    assert hash_of(kind, seed_image="seed:2", agent_image="agent:2") == hash_of(kind)


def test_a_hold_record_of_the_last_release_is_read_and_written_alike() -> None:
    text = (BASELINE / "hold-record.json").read_text().strip()
    record = decode(text)
    assert isinstance(record, HoldRecord)
    assert None not in (record.hold, record.step, record.standbys)
    assert encode(record) == text


def test_every_reason_of_the_last_release_is_known() -> None:
    """A hold whose reason has another name now could not be read."""
    assert set((BASELINE / "reasons.txt").read_text().split()) - {reason.name for reason in Reason} == set()
