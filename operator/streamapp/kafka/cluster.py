"""One Kafka cluster as one application sees it: the entry point of this package.

Created by the controller, one per application, with connections and a resolver thread of its own: an unresponsive
cluster costs only its own application the deadline.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from streamapp.kafka.connection.answer_limits import DEFAULT_LIMITS, AnswerLimits
from streamapp.kafka.connection.connector import Connector
from streamapp.kafka.connection.coordinator import Coordinator
from streamapp.kafka.connection.pool import Pool
from streamapp.kafka.connection.settings import KafkaSettings
from streamapp.kafka.group.group_configs import GroupConfigs
from streamapp.kafka.group.group_prefixes import PrefixReader
from streamapp.kafka.topics.offsets import OffsetReader
from streamapp.kafka.topics.tails import TailReader
from streamapp.kafka.topics.topics import TopicReader


class KafkaCluster:
    """A cluster and one group on it; connects at first use, from within the event loop."""

    def __init__(self, settings: KafkaSettings, group_id: str, limits: AnswerLimits = DEFAULT_LIMITS) -> None:
        limits = replace(limits, owner=object())
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"kafka-{group_id}")
        self._pool = Pool(settings, Connector(settings, self._executor, limits))
        self.group = Coordinator(self._pool, group_id)
        """For `groups.read_group`, `offsets.committed`, `rebalance.trigger_rebalance` and `eviction.evict`."""
        self.configs = GroupConfigs(self._pool, group_id)
        self.topics = TopicReader(self._pool)
        self.prefixes = PrefixReader(self._pool)
        self.offsets = OffsetReader(self._pool)
        self.tails = TailReader(self._pool)

    def close(self) -> None:
        """Drop every connection; waits for nothing."""
        self._pool.close()
        self._executor.shutdown(wait=False, cancel_futures=True)
