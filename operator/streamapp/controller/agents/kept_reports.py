"""How much of the agents' reports the process keeps: for all applications together, and which namespace keeps most.

Used by `poller` after each round of questions. Pure accounting. Each application keeps what its agents said in the last
quarter of a minute, and a tenant chooses how many pods and applications there are, and what their agents say.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from streamapp.core.facts.agent_reports import AgentReport, AgentsSeen
from streamapp.kube.client.kinds import Key

MOST_PARTS = 750_000
"""Of all reports that are kept: some 170 MB. Those of an application of 5,000 tasks with two standbys are a third."""
NO_ROOM = "the reports of all agents together need more memory than there is; look at the sizes of the reports"


@dataclass(slots=True)
class KeptReports:
    """The parts of the reports that each application keeps (`AgentReport.parts`)."""

    most: int = MOST_PARTS
    _parts: dict[Key, int] = field(default_factory=dict)

    def have_room(self, key: Key, seen: AgentsSeen) -> bool:
        """Count what an application keeps; False if its namespace keeps most while all keep too much.

        Then nothing of the application is counted, and nothing must be kept.
        """
        replies = (one for words in seen.words.values() for one in words)
        self._parts[key] = sum(one.parts for one in replies if isinstance(one, AgentReport))
        if sum(self._parts.values()) <= self.most:
            return True
        of_namespace: defaultdict[str, int] = defaultdict(int)
        for app, parts in self._parts.items():
            of_namespace[app.namespace] += parts
        if of_namespace[key.namespace] < max(of_namespace.values()):
            return True
        self.forget(key)
        return False

    def forget(self, key: Key) -> None:
        """Count nothing of an application any more."""
        self._parts.pop(key, None)
