"""The installation's keys, from which agents' tokens are derived: a file, usually of a mounted Secret.

The file is read at each use, since a Secret can change while the operator runs. The keys are never logged.
"""

from dataclasses import dataclass
from pathlib import Path

from streamapp.wire.agent_token import LEAST_KEY, MOST_KEYS, accepted

_VARIABLE = "STREAMAPP_AGENT_KEY_FILE"
_NEXT = "see docs/agents.md (Keys)"


@dataclass(frozen=True, slots=True)
class NoKeys:
    """Agents cannot be used; says why, and what to do."""

    why: str


@dataclass(frozen=True, slots=True)
class KeyFile:
    """One key in each line, the one that is used in the first."""

    path: str
    """Empty: there is none."""

    def read(self) -> tuple[bytes, ...] | NoKeys:
        """Give one or two keys."""
        if not self.path:
            return NoKeys(f"the operator has no key for agents: {_VARIABLE} is not set; {_NEXT}")
        try:
            lines = Path(self.path).read_bytes().split()
        except OSError as error:
            return self._unusable(f"cannot be read ({error.strerror})")
        if not 1 <= len(lines) <= MOST_KEYS:
            return self._unusable(f"has {len(lines)} lines and must have 1 to {MOST_KEYS}")
        if any(len(line) < LEAST_KEY for line in lines):
            return self._unusable(f"has a line of less than {LEAST_KEY} characters")
        return tuple(lines)

    def accepted(self, app_uid: str) -> str:
        """The hashes of the tokens that a StreamApp's agents accept; empty where there is no key."""
        keys = self.read()
        return "" if isinstance(keys, NoKeys) else accepted(keys, app_uid)

    def _unusable(self, why: str) -> NoKeys:
        return NoKeys(f"the operator has no key for agents: {self.path}, which {_VARIABLE} names, {why}; {_NEXT}")
