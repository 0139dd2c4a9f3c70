"""The shell: hears of changes, gathers the facts, has the core decide, and makes what it decided.

The only owner of kopf. Read `reconcile` first: one pass over one application, on one screen. Then, in the order in
which a change travels: `handlers` (kopf's watches mark a key dirty), `key_queue` (one pass per key at a time, retried),
`gather` (live reads and what `memory` remembers, as one `Snapshot`), `apply` (the plan's steps as calls), `reporting`
(status, Events, log, metrics). Beside the passes, `watching` polls each application's group on its own, through
`kafka_side`, so that a broker that does not answer delays nobody. `recorder` keeps the flight record of every pass,
which `record_writer` writes in a thread of its own (`record_queue`, `record_files`); `recording` puts those together.
`process` puts all together; `health` and `metrics` are what others ask.

Nothing that matters lives here in memory: after a restart everything is read again, and what cannot be read again (how
long a wish has been the same, who was seen in the group) begins anew and holds meanwhile.
"""
