"""Who leads a group, and how often it was rebalanced: the broker tells nobody, but the leader's own log does."""

import re
from collections.abc import Mapping
from datetime import datetime

from lab.scenarios.observed_app import ObservedApp

_CLASS = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
SAYS_WHO_LEADS = f"-Dorg.slf4j.simpleLogger.log.{_CLASS}=info"
"""For the options of the application's JVM."""
_LEAD = re.compile(r"^(\S+) INFO ConsumerCoordinator .*Finished assignment for group", re.MULTILINE)


def leader(observed: ObservedApp) -> int:
    """The ordinal whose member made the newest assignment of the group."""
    times = assignments(observed)
    assert times, "no member says that it made an assignment"
    return times[max(times)]


def assignments(observed: ObservedApp) -> Mapping[datetime, int]:
    """When the pods that are there made an assignment, and which ordinal it was: at least one in each rebalance."""
    times: dict[datetime, int] = {}
    for pod in observed.app.pods():
        name = pod["metadata"]["name"]
        log = observed.app.kubectl.run("logs", "--namespace", observed.app.namespace, name, "--container=counter")
        times |= {datetime.fromisoformat(moment): int(name.rsplit("-", 1)[1]) for moment in _LEAD.findall(log)}
    return times
