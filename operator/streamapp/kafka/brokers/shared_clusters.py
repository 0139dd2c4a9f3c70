"""All clusters of one process: whoever has the same bootstrap brokers and client properties shares one.

Made once by the controller and given to each `kafka.cluster.KafkaCluster`. Two applications share only if the whole
value of their settings is equal, passwords and keys included. What brokers say of themselves, such as a cluster ID,
never counts: a hostile broker could take a part in the connections of others.

The last application that leaves closes the connections. New credentials are other settings: their connections are new,
and the old ones are closed as soon as no application uses them.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace

from streamapp.kafka.brokers.common_requests import CommonRequests
from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.brokers.shared_brokers import SharedBrokers
from streamapp.kafka.connection.answer_limits import DEFAULT_LIMITS, AnswerLimits
from streamapp.kafka.connection.connector import Connector, Threads
from streamapp.kafka.connection.settings import KafkaSettings


@dataclass(slots=True, eq=False)
class SharedCluster:
    """One cluster, as far as its applications share it."""

    brokers: SharedBrokers
    common: CommonRequests
    users: int = 0


class SharedClusters:
    """Of one process."""

    def __init__(self, limits: AnswerLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._threads = Threads()
        self._clusters: dict[KafkaSettings, SharedCluster] = {}

    @property
    def count(self) -> int:
        """How many are in use."""
        return len(self._clusters)

    @property
    def connections(self) -> int:
        """How many are open to all of them, without those that belong to one application."""
        return sum(one.brokers.connections for one in self._clusters.values())

    def enter(self, settings: KafkaSettings, tenant: Hashable = None) -> SharedCluster:
        """Begin to use a cluster; whoever does must leave it once."""
        cluster = self._clusters.get(settings)
        if cluster is None:
            brokers = SharedBrokers(settings, Connector(settings, self._threads))
            pool = Pool(brokers, replace(self._limits, owner=object()), tenant)
            cluster = self._clusters[settings] = SharedCluster(brokers, CommonRequests(pool))
        cluster.users += 1
        return cluster

    def leave(self, cluster: SharedCluster) -> None:
        """Use it no more; the last one closes it."""
        cluster.users -= 1
        if not cluster.users:
            del self._clusters[cluster.brokers.settings]
            cluster.common.close()
            cluster.brokers.close()

    def close(self) -> None:
        """Begin nothing more; waits for nothing."""
        self._threads.close()
