"""What the last pass over an application gathered, kept for who asks later.

Set by `reconcile`, read by `answering`. All of it is values that nobody changes.
"""

from dataclasses import dataclass

from streamapp.api.validation.parse import InvalidStreamApp, StreamApp
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class LastPass:
    """One pass."""

    found: StreamApp | InvalidStreamApp
    snapshot: Snapshot
    policy: ScalingPolicy

    @property
    def uid(self) -> str:
        """Of the StreamApp."""
        return self.snapshot.app.uid
