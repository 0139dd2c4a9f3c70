"""The captured groups, as the broker described them."""

import json
from pathlib import Path

from streamapp.wire.members import RawMember

_FOLDER = Path(__file__).parent / "captured"

NAMES = sorted(path.stem for path in _FOLDER.glob("*.json"))


def captured(name: str) -> list[RawMember]:
    """Give the members of one captured group."""
    group = json.loads((_FOLDER / f"{name}.json").read_text())
    return [
        RawMember(
            member_id=member["member_id"],
            instance_id=member["instance_id"],
            client_id=member["client_id"],
            client_host=member["client_host"],
            metadata=bytes.fromhex(member["metadata"]),
            assignment=bytes.fromhex(member["assignment"]),
        )
        for member in group["members"]
    ]


ALL_METADATA = [member.metadata for name in NAMES for member in captured(name)]
ALL_ASSIGNMENTS = [member.assignment for name in NAMES for member in captured(name)]
