"""Every metric that the operator serves to Prometheus.

Set by `reconcile.report`, `process` and the work queue; served by `http.probes`.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import generate_latest

_APP = ("namespace", "name")
_TO = ("to",)
_RECONCILE_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_HOLD_SECONDS = (5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600)
_GAP_SECONDS = (0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)

disable_created_metrics()  # a third of what a scrape of a thousand applications would be

SUCCESS = "success"
ERROR = "error"
"""The two values of the label `result`, but for steps."""
TOLERATED = "tolerated"
"""A step that failed, and that nothing else waits for: no alert counts it."""
REMOVED = "removed"
CANCELLED = "cancelled"
"""The two values of the label `outcome`."""


class Metrics:
    """All metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._of_holds(self.registry)
        self._of_ended_holds(self.registry)
        self._of_applications(self.registry)
        self._of_downtime(self.registry)
        self._of_forecasts(self.registry)
        self._of_agents(self.registry)
        self._of_restores(self.registry)
        self._of_the_process(self.registry)
        self._of_the_record(self.registry)

    def _of_holds(self, registry: CollectorRegistry) -> None:
        """Replicas, and what a scale-down waits for."""
        self.replicas = Gauge(
            "streamapp_replicas",
            "Replicas by kind: `desired` (spec), `current` (StatefulSet), `actual` (existing pods), `ready`.",
            (*_APP, "kind"),
            registry=registry,
        )
        self.hold_seconds = Gauge(
            "streamapp_hold_seconds",
            "Seconds since the operator's hold began, or its record was unreadable; 0 without, or under a user's hold.",
            _APP,
            registry=registry,
        )
        self.waiting_tasks = Gauge(
            "streamapp_hold_waiting_tasks",
            "Tasks without a caught-up copy that the next step of a scale-down waits for.",
            _APP,
            registry=registry,
        )
        self.remaining_lag = Gauge(
            "streamapp_remaining_lag_records",
            "Records that copies and restoring tasks still have to apply; absent if one of the lags is unknown.",
            _APP,
            registry=registry,
        )

    def _of_ended_holds(self, registry: CollectorRegistry) -> None:
        """How long holds and steps took."""
        self.hold_durations = Histogram(
            "streamapp_hold_duration_seconds",
            "Durations of ended holds, by outcome: `removed` (pods were removed) or `cancelled`.",
            ("outcome",),
            buckets=_HOLD_SECONDS,
            registry=registry,
        )
        for outcome in (REMOVED, CANCELLED):
            self.hold_durations.labels(outcome)  # Prometheus sees no rise where a series begins
        self.gaps = Histogram(
            "streamapp_step_downtime_seconds",
            "Longest downtime of a task in each completed step of a scale-down, at most.",
            buckets=_GAP_SECONDS,
            registry=registry,
        )

    def _of_applications(self, registry: CollectorRegistry) -> None:
        """The state of an application, and the changes that the operator made."""
        self.converged = Gauge(
            "streamapp_converged", "1 if the application is converged, else 0.", _APP, registry=registry
        )
        self.condition = Gauge(
            "streamapp_condition",
            "1 for the current status of each condition, else 0, by type and status.",
            (*_APP, "type", "status"),
            registry=registry,
        )
        self.group_read_age = Gauge(
            "streamapp_group_read_age_seconds",
            "Seconds since the consumer group was last read successfully, or since the first attempt.",
            _APP,
            registry=registry,
        )
        self.last_success = Gauge(
            "streamapp_last_success_timestamp_seconds",
            "Unix time of the last reconcile that read, decided, applied and reported without an error.",
            _APP,
            registry=registry,
        )
        self.last_success_age = Gauge(
            "streamapp_last_success_age_seconds",
            "Seconds since the last reconcile without an error, or since the first attempt of this process.",
            _APP,
            registry=registry,
        )
        self.steps = Counter(
            "streamapp_plan_steps_total",
            "Steps of plans, by step and result: success, error, or tolerated, a failure that nothing else waits for.",
            (*_APP, "step", "result"),
            registry=registry,
        )
        self.removed = Counter(
            "streamapp_replicas_removed_total", "Replicas removed, by reason.", (*_APP, "reason"), registry=registry
        )

    def _of_forecasts(self, registry: CollectorRegistry) -> None:
        """Predicted changes of the replicas, beside what was seen."""
        self.forecasts = Counter(
            "streamapp_forecasts_total",
            "Predicted changes of the replicas that are over: the time was `within` or `outside` the range, there was "
            "`no time`, or another change `superseded` it.",
            (*_APP, "result"),
            registry=registry,
        )
        self.forecast_error = Gauge(
            "streamapp_forecast_error_ratio",
            "Time of the last predicted change, as a multiple of the predicted median.",
            _APP,
            registry=registry,
        )
        self.forecast_wrong_moves = Gauge(
            "streamapp_forecast_wrong_moves",
            "Stateful tasks that ended elsewhere than predicted in the last predicted change.",
            _APP,
            registry=registry,
        )

    def _of_agents(self, registry: CollectorRegistry) -> None:
        """Requests and announcements to agents."""
        self.agent_requests = Counter(
            "streamapp_agent_requests_total",
            "Requests to agents for their report, by result.",
            (*_APP, "result"),
            registry=registry,
        )
        self.announcements = Counter(
            "streamapp_agent_announcements_total",
            "Announcements of leaving processes to agents, by result.",
            (*_APP, "result"),
            registry=registry,
        )

    def _of_downtime(self, registry: CollectorRegistry) -> None:
        """Times in which tasks did not run; the times of several tasks add up."""
        self.task_seconds = Counter(
            "streamapp_task_seconds_total",
            "Tasks times the seconds in which the operator watched them.",
            _APP,
            registry=registry,
        )
        self.downtime = Counter(
            "streamapp_downtime_task_seconds_total",
            "Seconds in which tasks did not run, at most, by cause. Counted half a minute after each time has ended.",
            (*_APP, "cause"),
            registry=registry,
        )
        self.downtime_seen = Counter(
            "streamapp_downtime_seen_task_seconds_total",
            "Seconds in which tasks were seen not to run: the downtime is at least as long.",
            _APP,
            registry=registry,
        )
        self.long_downtimes = Counter(
            "streamapp_downtimes_over_objective_total",
            "Times in which a task did not run for longer than `spec.objective.longestDowntime`, at most.",
            _APP,
            registry=registry,
        )
        self.downtime_budget = Gauge(
            "streamapp_downtime_budget_ratio",
            "Share of the task-seconds that can be lost: 1 minus `spec.objective.availability`.",
            _APP,
            registry=registry,
        )

    def _of_restores(self, registry: CollectorRegistry) -> None:
        """The budget of learners; without `restores.perCluster` there is no series."""
        self.restore_places_used = Gauge(
            "streamapp_restore_places_used",
            "Applications that have a place in the budget of learners, by the bootstrap brokers of their cluster.",
            ("brokers",),
            registry=registry,
        )
        self.restore_places_waiting = Gauge(
            "streamapp_restore_places_waiting",
            "Applications that wait for a place in the budget of learners, by the bootstrap brokers of their cluster.",
            ("brokers",),
            registry=registry,
        )

    def _of_the_process(self, registry: CollectorRegistry) -> None:
        """The operator's own work."""
        self.build_info = Gauge(
            "streamapp_build_info", "1, with the version of the operator.", ("version",), registry=registry
        )
        self.start_time = Gauge(
            "streamapp_start_time_seconds", "Unix time at which the process started.", registry=registry
        )
        self.reconciles = Counter("streamapp_reconcile_total", "Reconciles, by result.", ("result",), registry=registry)
        self.reconcile_seconds = Histogram(
            "streamapp_reconcile_time_seconds", "Duration of reconciles.", buckets=_RECONCILE_SECONDS, registry=registry
        )
        self.leader = Gauge("streamapp_leader", "1 if this replica is the leader, else 0.", registry=registry)
        self.lease_transitions = Gauge(
            "streamapp_lease_transitions",
            "Leader transitions that the Lease records; 0 without a Lease.",
            registry=registry,
        )
        self.queue_depth = Gauge(
            "streamapp_workqueue_depth", "StreamApps that are due, or being reconciled.", registry=registry
        )
        self.queue_adds = Counter(
            "streamapp_workqueue_adds_total", "StreamApps added to the work queue.", registry=registry
        )
        self.queue_oldest_seconds = Gauge(
            "streamapp_workqueue_oldest_seconds", "Age of the oldest StreamApp in the work queue.", registry=registry
        )
        self.requests = Counter(
            "streamapp_rest_client_requests_total",
            "Requests to the API server, by response code; 0 means no response.",
            ("method", "resource", "code"),
            registry=registry,
        )
        self._of_watches(registry)

    def _of_watches(self, registry: CollectorRegistry) -> None:
        """What the operator sees of its namespaces."""
        self.namespace_listed = Gauge(
            "streamapp_namespace_listed",
            "1 if the operator can list a namespace of `watchNamespaces`, else 0; absent if it watches all namespaces.",
            ("namespace",),
            registry=registry,
        )
        self.watch_events = Counter(
            "streamapp_watch_events_total", "Watch events, by resource.", ("resource",), registry=registry
        )

    def _of_the_record(self, registry: CollectorRegistry) -> None:
        """The flight record, by destination: `file` or `topic`; errors also of a `pass` without lines."""
        self.record_lines = Counter(
            "streamapp_record_lines_total", "Lines written to the flight record.", _TO, registry=registry
        )
        self.record_dropped = Counter(
            "streamapp_record_dropped_total", "Lines of the flight record that were dropped.", _TO, registry=registry
        )
        self.record_errors = Counter(
            "streamapp_record_errors_total", "Failed writes of the flight record.", _TO, registry=registry
        )
        self.record_producer_ends = Counter(
            "streamapp_record_producer_ends_total",
            "Processes that write the flight record to its topic and ended unasked, or gave no answer.",
            registry=registry,
        )
        self.record_bytes = Gauge(
            "streamapp_record_bytes", "Size of the flight record's files, including the open file.", registry=registry
        )
        self.record_oldest_seconds = Gauge(
            "streamapp_record_oldest_seconds",
            "Age of the oldest finished file of the flight record.",
            registry=registry,
        )
        self.record_files_removed = Counter(
            "streamapp_record_files_removed_total",
            "Finished files of the flight record that its size and age limits removed.",
            registry=registry,
        )

    def forget(self, namespace: str, name: str) -> None:
        """Remove the metrics of a deleted application."""
        of_apps = (
            *(self.replicas, self.hold_seconds, self.waiting_tasks, self.remaining_lag, self.converged),
            *(self.condition, self.group_read_age, self.last_success, self.last_success_age),
            *(self.steps, self.removed),
            *(self.agent_requests, self.announcements),
            *(self.forecasts, self.forecast_error, self.forecast_wrong_moves),
            *(self.task_seconds, self.downtime, self.downtime_seen, self.long_downtimes, self.downtime_budget),
        )
        for metric in of_apps:
            metric.remove_by_labels({"namespace": namespace, "name": name})

    def text(self) -> bytes:
        """Return the body of `/metrics`."""
        return generate_latest(self.registry)
