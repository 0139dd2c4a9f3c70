"""One Kafka cluster as one application sees it: the entry point of this package.

Created by the controller, one per application. Applications with the same bootstrap brokers and the same client
properties share connections; each has its own deadlines, its own part of the budget of bytes, and its own turns, so
that an unresponsive cluster costs only its own applications the deadline.
"""

from collections.abc import Hashable
from dataclasses import replace

from streamapp.kafka.brokers.coordinator import Coordinator
from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.brokers.shared_clusters import SharedCluster, SharedClusters
from streamapp.kafka.connection.answer_limits import DEFAULT_LIMITS, AnswerLimits
from streamapp.kafka.connection.settings import KafkaSettings
from streamapp.kafka.group.group_configs import GroupConfigs
from streamapp.kafka.group.group_prefixes import PrefixReader
from streamapp.kafka.topics.offsets import OffsetReader
from streamapp.kafka.topics.tails import TailReader
from streamapp.kafka.topics.topics import TopicReader


class KafkaCluster:
    """A cluster and one group on it; connects at first use, from within the event loop."""

    def __init__(
        self,
        settings: KafkaSettings,
        group_id: str,
        limits: AnswerLimits = DEFAULT_LIMITS,
        *,
        clusters: SharedClusters | None = None,
        tenant: Hashable = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            settings: How the cluster is reached; those who give the same share connections.
            group_id: The group, which is the application's ID.
            limits: Bound the answers.
            clusters: Those of the process; None: this one shares with no other.
            tenant: Whose places it takes for what blocks, such as looking names up.
        """
        self._clusters, self._is_alone = SharedClusters(limits) if clusters is None else clusters, clusters is None
        shared = self._clusters.enter(settings, tenant)
        self._shared: SharedCluster | None = shared
        self._pool = Pool(shared.brokers, replace(limits, owner=object()), tenant)
        self.group = Coordinator(self._pool, group_id)
        """For `groups.read_group`, `offsets.committed`, `rebalance.trigger_rebalance` and `eviction.evict`."""
        self.configs = GroupConfigs(self._pool, group_id)
        self.topics = TopicReader(self._pool, shared.common)
        self.prefixes = PrefixReader(shared.common)
        self.offsets = OffsetReader(self._pool)
        self.tails = TailReader(self._pool)

    def close(self) -> None:
        """End what is under way, and drop every connection that no other application uses; waits for nothing."""
        shared, self._shared = self._shared, None
        if shared is None:
            return
        self._pool.close()
        self._clusters.leave(shared)
        if self._is_alone:
            self._clusters.close()
