"""DECIDE: what to do with one application, and why. Pure values and functions: no I/O, clock, log or randomness.

`planning.decide(snapshot, policy)` is the only door to a decision. Time enters as `snapshot.now`; unknown is a type,
never a number; whatever cannot be seen holds. Read in this order:

1.  The facts. `identity` names things, `task_set` says which tasks there are and `topology` where that is known from;
    `group` is what the broker shows and `workload` what Kubernetes shows, `containers` joins the two; `agents`
    is what the JVMs say of themselves; `topic_configs` is how long topics keep things; `replica_writers` is
    who drives the replicas; `snapshot` is all of it, `policy` what the user chose.
2.  The answer. `reasons` has every why, `decision` every step; `holds` is the one durable memory, `record_text` its
    text.
3.  What the facts mean. `membership` places every member in a pod; `hearing` says which of the agents' words count;
    `activity` says which tasks run, `lag` how far a copy is, `tails` when the end of a changelog misleads, `coverage`
    and `coverage_by_agents` which tasks would be left without a copy; `learners` and `sources` where copies come from,
    `readings` when to believe any of it.
4.  May they go? `departures` says which pods would be next, `gates` what must be true for any, `agent_gates` what
    agents must say, `coverage_gates` what a user's word can override, `draining` the same where pods are emptied
    before they go; `judging` asks them all, on a `cases.Case`.
5.  What then. `holding` keeps or takes one step, `closings` brings an open step to its end, `eviction` says who may be
    put out of the group, `rollouts` who may restart, `rebalances` when to rebalance, `announcing` what agents are told,
    `room` whether learners would fit, `estimates` how long still.
6.  All together. `outcomes` is what a branch wants, `beside` what goes on whatever it wants, `plans` makes one plan of
    it; `convergence`, `gaps`, `retention`, `soundness` and `conditions` are what is reported; `planning` is the order
    of the branches.
7.  For the record. `copies` is every copy that a look shows, `sampling` which of them are worth a line.

Beside the decision, for who asks: `examining.examine(patient)` says what is wrong, with the codes of `diagnoses`, from
the `patients` that the controller makes, by `checks_of_resource`, `checks_of_kafka` and `checks_by_agents`;
`task_table` is every task with its copies.

`seeding` is used before an application's first start. `example` is one small application, `table` decides about it in
every combination of wish, hold, learners and group: `docs/state-table.md`.
"""
