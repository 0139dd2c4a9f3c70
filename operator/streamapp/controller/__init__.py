"""Runs the operator: watches Kubernetes, gathers facts, lets the core decide, and carries out the plan.

The only owner of kopf. Start with `reconcile.reconciler`: one pass over one application, on one screen. `process` puts
all parts together, and `lifecycle` runs them; `http` serves probes, metrics and reports.

1. `reconcile.watches` receives events from kopf and marks the application's key dirty.
2. `reconcile.workqueue` runs one pass per key at a time and retries failed passes.
3. `reconcile.gather` reads Kubernetes and takes the rest from `apps.memory`, as one `Snapshot`.
4. `reconcile.apply` turns each step of the plan into one call.
5. `reconcile.report` writes status, Events, log and metrics; `record` keeps the flight record.

Beside the passes, `apps.group_poller` polls the consumer group of each application on its own, so that an unresponsive
broker delays only its own application. `leader` lets one replica act at a time.

Nothing that matters exists only in memory. After a restart everything is read again. What cannot be read again starts
empty and causes holds meanwhile: how long the desired replicas have been unchanged, which members were in the group.
"""
