"""What was read, and what the user chose: values without a rule in them.

`ids` names things; `tasks` says which tasks there are, `topology` where that is known from. `group` is what the broker
shows, `workload` what Kubernetes shows, `agent_reports` what the JVMs report, `lag` how far a copy is behind. `policy`
is the user's choice, `hold_record` the one durable memory. `snapshot` is all of it at one time.
"""
