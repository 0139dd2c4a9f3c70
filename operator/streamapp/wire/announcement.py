"""Writes an announcement (`agent/protocol/announcement.schema.json`), and reads what an agent answers to it.

Called by `streamapp.agents`.
"""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import TypeGuard

from streamapp.core.facts.agent_reports import MOST_LEAVING, Rebalance
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import ProcessId

LONGEST_TTL = timedelta(minutes=10)
_LONGEST_ERROR = 300


def announcement(process_ids: Iterable[ProcessId], epoch: Epoch, rebalance: Rebalance, ttl: timedelta) -> bytes:
    """Encode it as JSON; the same content always gives the same bytes.

    Raises:
        ValueError: More processes, or a longer or shorter time, than an agent takes.
    """
    leaving = sorted(set(map(str, process_ids)))
    seconds = int(ttl / timedelta(seconds=1))
    if len(leaving) > MOST_LEAVING:
        raise ValueError(f"announcement: {len(leaving)} processes, at most {MOST_LEAVING} can be announced")
    if not timedelta(seconds=1) <= ttl <= LONGEST_TTL:
        raise ValueError(f"announcement: it cannot hold for {ttl}, only for 1 to {LONGEST_TTL.seconds} s")
    content = {
        "epoch": {"lease": epoch.lease, "counter": epoch.counter},
        "ttlSeconds": seconds,
        "processIds": leaving,
        "rebalance": rebalance.value,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def epoch_in(answer: bytes) -> Epoch | None:
    """Read the epoch that an agent says it knows; None where the answer has none."""
    epoch = _object(answer).get("epoch")
    if not isinstance(epoch, dict):
        return None
    lease, counter = epoch.get("lease"), epoch.get("counter")
    if not _is_count(lease) or not _is_count(counter):
        return None
    return Epoch(lease=lease, counter=counter)


def error_in(answer: bytes) -> str:
    """Read the sentence with which an agent refuses; empty where the answer has none."""
    error = _object(answer).get("error")
    return " ".join(error[:_LONGEST_ERROR].split()) if isinstance(error, str) else ""


def _object(answer: bytes) -> dict[str, object]:
    try:
        content = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
