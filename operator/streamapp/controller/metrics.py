"""Every name that the operator shows to Prometheus, in one place, and nothing else.

Names of queue and reconcile follow controller-runtime, so that dashboards made for other operators work. Set by
`reconcile.report`, `process` and the queue; served by `http.probes`.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

_APP = ("namespace", "name")
_TO = ("to",)
_PASS_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """All metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._of_holds(self.registry)
        self._of_applications(self.registry)
        self._of_agents(self.registry)
        self._of_the_process(self.registry)
        self._of_the_record(self.registry)

    def _of_holds(self, registry: CollectorRegistry) -> None:
        """What is granted, and what a scale-down waits for."""
        self.replicas = Gauge(
            "streamapp_replicas",
            "Replicas of an application: desired by the user, granted to the StatefulSet, actual pods, ready pods.",
            (*_APP, "kind"),
            registry=registry,
        )
        self.hold_seconds = Gauge(
            "streamapp_hold_seconds",
            "How long the present scale-down has been held; 0: none is.",
            _APP,
            registry=registry,
        )
        self.waiting_tasks = Gauge(
            "streamapp_hold_waiting_tasks",
            "Tasks that the next step of a scale-down waits for.",
            _APP,
            registry=registry,
        )
        self.remaining_lag = Gauge(
            "streamapp_remaining_lag_records",
            "Records that copies and restoring tasks are behind; absent where one of them is unknown.",
            _APP,
            registry=registry,
        )

    def _of_applications(self, registry: CollectorRegistry) -> None:
        """How an application is, and what was done about it."""
        self.converged = Gauge(
            "streamapp_converged", "1 where nothing moves any more, 0 where something does.", _APP, registry=registry
        )
        self.condition = Gauge(
            "streamapp_condition",
            "1 for the status that a condition has, by type and status.",
            (*_APP, "type", "status"),
            registry=registry,
        )
        self.group_read_age = Gauge(
            "streamapp_group_read_age_seconds", "Age of the newest look at the group.", _APP, registry=registry
        )
        self.steps = Counter(
            "streamapp_plan_steps_total",
            "Steps of plans that were made, by kind and result.",
            (*_APP, "step", "result"),
            registry=registry,
        )
        self.removed = Counter(
            "streamapp_replicas_removed_total", "Replicas taken away, by reason.", (*_APP, "reason"), registry=registry
        )

    def _of_agents(self, registry: CollectorRegistry) -> None:
        """What was heard of agents, and what they were told."""
        self.agent_reads = Counter(
            "streamapp_agent_reads_total", "Questions to agents, by result.", (*_APP, "result"), registry=registry
        )
        self.announcements = Counter(
            "streamapp_agent_announcements_total",
            "Announcements to agents of who leaves, by result.",
            (*_APP, "result"),
            registry=registry,
        )

    def _of_the_process(self, registry: CollectorRegistry) -> None:
        """The operator's own work."""
        self.reconciles = Counter("streamapp_reconcile_total", "Passes, by result.", ("result",), registry=registry)
        self.reconcile_seconds = Histogram(
            "streamapp_reconcile_time_seconds", "Duration of passes.", buckets=_PASS_SECONDS, registry=registry
        )
        self.leader = Gauge("streamapp_leader", "1 where this replica leads, 0 where it stands by.", registry=registry)
        self.lease_transitions = Gauge(
            "streamapp_lease_transitions",
            "How often the Lease has changed hands, as this replica last saw it; 0 without a Lease.",
            registry=registry,
        )
        self.queue_depth = Gauge("streamapp_workqueue_depth", "Keys that are due or in a pass.", registry=registry)
        self.queue_adds = Counter("streamapp_workqueue_adds_total", "Requests for a pass.", registry=registry)
        self.queue_oldest_seconds = Gauge(
            "streamapp_workqueue_oldest_seconds", "Age of the key that is due longest.", registry=registry
        )
        self.requests = Counter(
            "streamapp_rest_client_requests_total",
            "Requests to the API server; code 0: no answer.",
            ("method", "resource", "code"),
            registry=registry,
        )
        self.watch_events = Counter(
            "streamapp_watch_events_total", "Events of kopf's watches, by kind.", ("resource",), registry=registry
        )

    def _of_the_record(self, registry: CollectorRegistry) -> None:
        """The flight record, by where it goes: `file` or `topic`; errors also of a `pass` of which nothing is told."""
        self.record_lines = Counter(
            "streamapp_record_lines_total", "Lines of the flight record that were written.", _TO, registry=registry
        )
        self.record_dropped = Counter(
            "streamapp_record_dropped_total", "Lines of the flight record that were lost.", _TO, registry=registry
        )
        self.record_errors = Counter(
            "streamapp_record_errors_total", "Attempts to write the flight record that failed.", _TO, registry=registry
        )
        self.record_bytes = Gauge(
            "streamapp_record_bytes", "Bytes of the flight record's files, the open one included.", registry=registry
        )
        self.record_oldest_seconds = Gauge(
            "streamapp_record_oldest_seconds", "Age of the flight record's oldest finished file.", registry=registry
        )
        self.record_files_removed = Counter(
            "streamapp_record_files_removed_total",
            "Finished files of the flight record that were removed for the limits of size and age.",
            registry=registry,
        )

    def forget(self, namespace: str, name: str) -> None:
        """Drop what is shown of an application that is gone."""
        of_apps = (
            *(self.replicas, self.hold_seconds, self.waiting_tasks, self.remaining_lag, self.converged),
            *(self.condition, self.group_read_age, self.steps, self.removed, self.agent_reads, self.announcements),
        )
        for metric in of_apps:
            metric.remove_by_labels({"namespace": namespace, "name": name})

    def text(self) -> bytes:
        """What `/metrics` answers."""
        return generate_latest(self.registry)
