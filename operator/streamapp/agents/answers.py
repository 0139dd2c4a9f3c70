"""Results of requests to agents: values, each with a sentence if something went wrong.

Made by `client`, read by the controller.
"""

from dataclasses import dataclass
from enum import Enum

from streamapp.agents.tls import AgentTls
from streamapp.core.facts.agent_reports import AgentReport, AgentSilent
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAddress:
    """Where an agent is."""

    ordinal: Ordinal
    pod: str
    """Its name, for sentences."""
    pod_uid: str
    address: str
    """IPv4 or IPv6, as text."""
    port: int
    tls: AgentTls | None = None
    """How to know it; None: it serves plain HTTP."""

    @property
    def host(self) -> str:
        """The address as it stands in a URL."""
        return f"[{self.address}]" if ":" in self.address else self.address

    def __str__(self) -> str:
        return f"pod {self.pod} at {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AgentReading:
    """The result of reading one agent's report."""

    reply: AgentReport | AgentSilent
    topology: str | None = None
    """The text of `Topology#describe()`; None where the agent does not know it, or is silent."""


class AnnouncementOutcome(Enum):
    """Whether the agent accepted an announcement."""

    TAKEN = "taken"
    REFUSED = "refused"
    FAILED = "failed"
    """It is not known whether the agent took it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncementResult:
    """The result of one announcement to one agent."""

    ordinal: Ordinal
    outcome: AnnouncementOutcome
    epoch: Epoch | None
    """The one that the agent knows by now, where it said so."""
    why: str = ""
    """A sentence, unless it was taken."""
