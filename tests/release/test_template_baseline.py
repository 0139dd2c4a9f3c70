"""The pod templates of the last release beside today's: another template restarts every pod at an upgrade."""

import json
from typing import Any

import pytest

from lab.settings import REPOSITORY
from streamapp.api.names import TEMPLATE_HASH
from streamapp.api.objects.manifests import Installation, statefulset
from streamapp.api.validation.parse import StreamApp, parse
from tests.streamapps import ABSENT, stored

BASELINE = REPOSITORY / "release" / "baseline" / "template-hashes.json"
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
    assert {kind: hash_of(kind)} == {kind: json.loads(BASELINE.read_text())[kind]}


@pytest.mark.parametrize("kind", KINDS)
def test_newer_images_of_seed_and_agent_restart_nothing(kind: str) -> None:
    assert hash_of(kind, seed_image="seed:2", agent_image="agent:2") == hash_of(kind)
