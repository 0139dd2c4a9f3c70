"""What a release writes and the next one must read, as files of `release/baseline`: `python -m tests.release.baseline`.

A maintainer runs it when the next version begins; the tests read the files with the code of that day.
"""

import json
import shutil
from typing import Any

from lab.settings import REPOSITORY
from release.definition import BASELINE as STORED_DEFINITION
from release.definition import DEFINITION
from streamapp.api.names import TEMPLATE_HASH
from streamapp.api.objects.manifests import Installation, statefulset
from streamapp.api.validation.parse import StreamApp, parse
from streamapp.core.facts.hold_annotation import decode, encode
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.reasons import Reason
from tests.streamapps import ABSENT, stored

BASELINE = REPOSITORY / "release" / "baseline"
HASHES = BASELINE / "template-hashes.json"
RECORD = BASELINE / "hold-record.json"
REASONS = BASELINE / "reasons.txt"
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


def record() -> HoldRecord:
    """The hold record that the last release wrote; every part is there."""
    read = decode(RECORD.read_text().strip())
    assert isinstance(read, HoldRecord)
    return read


def main() -> None:
    """Write them as the code of today does; the record with the parts that the stored one has."""
    HASHES.write_text(json.dumps({kind: hash_of(kind) for kind in KINDS}, indent=2) + "\n")
    RECORD.write_text(encode(record()) + "\n")
    REASONS.write_text("".join(f"{name}\n" for name in sorted(reason.name for reason in Reason)))
    shutil.copyfile(REPOSITORY / DEFINITION, REPOSITORY / STORED_DEFINITION)


if __name__ == "__main__":
    main()
