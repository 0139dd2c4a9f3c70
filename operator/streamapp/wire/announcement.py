"""Writes what agents are told: announcements and heartbeat caps (schemas in `agent/protocol`); reads their answers.

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
SHORTEST_CAP, LONGEST_CAP = timedelta(milliseconds=100), timedelta(seconds=5)
LONGEST_CAP_TTL = timedelta(minutes=2)
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


def heartbeat_cap(cap: timedelta, ttl: timedelta) -> bytes:
    """Encode a cap of the heartbeat interval (`agent/protocol/heartbeat.schema.json`); a `ttl` of zero ends it.

    Raises:
        ValueError: A shorter or longer interval or time than an agent takes.
    """
    if not SHORTEST_CAP <= cap <= LONGEST_CAP:
        raise ValueError(f"heartbeat cap: {cap} is not from {SHORTEST_CAP} to {LONGEST_CAP}")
    if not timedelta(0) <= ttl <= LONGEST_CAP_TTL:
        raise ValueError(f"heartbeat cap: it cannot hold for {ttl}, only for 0 to {LONGEST_CAP_TTL.seconds} s")
    content = {"capMillis": cap // timedelta(milliseconds=1), "ttlSeconds": ttl // timedelta(seconds=1)}
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
