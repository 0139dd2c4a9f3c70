"""What an examination looks at, beyond the snapshot: the pod template, the key for agents, how the last pass ended.

Made by the controller from what its last pass gathered; read by the checks.
"""

from dataclasses import dataclass
from datetime import datetime

from streamapp.core.doctor.diagnoses import Finding
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot

Found = tuple[Finding, ...] | None
"""What a check says: findings, none of them where all is well, or None where it does not apply."""

DEFAULT_GRACE_SECONDS = 30
"""Kubernetes' own, where a pod template does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateFacts:
    """What the StreamApp says about its pods."""

    grace_seconds: int | None = None
    """`terminationGracePeriodSeconds`; None where it is left to Kubernetes."""
    has_readiness_probe: bool
    """The application's container has one of its user's."""
    mount_path: str = ""
    """Where the volume is; empty where there is none."""
    state_directory: str = ""
    """Where the StreamApp says that `state.dir` is; empty where there is no volume."""


@dataclass(frozen=True, slots=True)
class PassFailure:
    """How the last pass failed."""

    at: datetime
    why: str
    """The request, the cause and what would settle it."""
    is_refusal: bool
    """The API server refused it for want of a right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One application."""

    snapshot: Snapshot
    policy: ScalingPolicy
    template: TemplateFacts | None
    """None where the spec cannot be read."""
    no_agent_key: str = ""
    """Why the operator has no key for agents; empty where it has one."""
    failure: PassFailure | None = None
    """None where the last pass succeeded."""
