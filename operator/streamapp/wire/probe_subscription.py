"""The subscription of the probe member, which joins only to trigger a rebalance and leaves at once.

Called by `kafka.group.rebalance`. If the leave is lost, the group's leader reads these bytes as one more stream thread
of a real process. So they carry that process's identity and claim nothing else; in particular no `errorCode`, which
could ask the whole application to shut down.
"""

import struct

from streamapp.wire.subscription import DecodedSubscription, SubscriptionInfo

_NO_GENERATION = -1
_UNIQUE_FIELD = 0
_NO_ERROR = 0


def encode_probe_subscription(model: DecodedSubscription) -> bytes:
    """Encode a subscription that owns nothing, in `model`'s versions and for `model`'s process.

    Copied are what the assignor takes to be the same for all threads of a process: process id, topics, endpoint, client
    tags and rack. Never copied: owned partitions, generation, offset sums, error code.
    """
    info = _info(model.info)
    parts = [
        struct.pack(">h", model.version),
        _count(len(model.topics)),
        *(_string(topic) for topic in model.topics),
        _blob(info),
    ]
    if model.version >= 1:
        parts.append(_count(0))
    if model.version >= 2:
        parts.append(struct.pack(">i", _NO_GENERATION))
    if model.version >= 3:
        parts.append(struct.pack(">h", -1) if model.rack is None else _string(model.rack))
    return b"".join(parts)


def _info(model: SubscriptionInfo) -> bytes:
    parts = [
        struct.pack(">ii", model.version, model.latest_supported_version),
        model.process_id.value.bytes,
        _blob(model.user_endpoint.encode()),
        _count(0),
    ]
    if model.version >= 8:
        parts.append(struct.pack(">b", _UNIQUE_FIELD))
    if model.version >= 9:
        parts.append(struct.pack(">i", _NO_ERROR))
    if model.version >= 11:
        parts.append(_count(len(model.client_tags)))
        parts += [_blob(key.encode()) + _blob(value.encode()) for key, value in model.client_tags]
    return b"".join(parts)


def _count(count: int) -> bytes:
    return struct.pack(">i", count)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _blob(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw
