"""DECIDE: what to do with one application, and why. Pure values and functions: no I/O, clock, log or randomness.

`decide.decide(snapshot, policy)` is the only door to a decision. Time enters as `snapshot.now`. Unknown is a type,
never a number. Whatever cannot be seen holds. Each room imports only rooms below it:

`decide`    the order of the branches: stalled, paused, created, scaled up, steady, held.
`doctor`    what is wrong with one application, for whoever asks; no decision depends on it.
`status`    what the resource reports: conditions, downtime, state age, autoscaling, the table of tasks.
`actions`   what to do: the hold, the open step, restarts, rebalances, announcements, and the plan of one pass.
`gates`     whether pods may go: one function per question, and `chains` with every list of them.
`evidence`  what the facts mean: who is where, what runs, which copies are caught up, how far the rest is.
`assignors` the broker's assignor, as a function: who gets which task.
`facts`     what was read, from Kubernetes, Kafka and the agents, and what the user chose.
`reasons`   every reason, with all that is known of it.
`reason_row` the fields in which that is said.
"""
