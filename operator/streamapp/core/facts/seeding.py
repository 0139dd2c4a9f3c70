"""The process ID that an ordinal is given before its first start.

Used by the translation to the init container that writes `kafka-streams-process-metadata`, if it is missing. An ID that
exists is never replaced: the volume's own word counts, this is only what a new volume gets.
"""

import hashlib
from uuid import UUID

from streamapp.core.facts.ids import Ordinal, ProcessId


def seeded_process_id(app_uid: str, ordinal: Ordinal) -> ProcessId:
    """Give `<ordinal, 8 hex>-0000-4000-8<15 hex of sha256(app_uid)>`.

    The stock assignor deals tasks round-robin in the order of process IDs, whose high half decides: ordered by ordinal,
    halving and doubling move the least. The rest keeps the processes of two StreamApps apart, cloned volumes included.

    Raises:
        ValueError: The ordinal is negative or does not fit into 31 bits (Java compares signed halves).
    """
    if not 0 <= ordinal < 2**31:
        raise ValueError(f"ordinal {ordinal}: a process ID holds 0 to {2**31 - 1}")
    digest = hashlib.sha256(app_uid.encode()).hexdigest()
    return ProcessId(UUID(f"{ordinal:08x}-0000-4000-8{digest[:3]}-{digest[3:15]}"))
