"""Whether pods may go: one function per question, each of which refuses by itself what it cannot see.

`chains` lists the gates of every kind of removal in the order in which they are asked. `safety_gates` and
`agents_agree` guard every removal unless `chains` leaves them out. A user can override only `coverage_gates`,
`drain_gates` and the two gates of announcements. `candidates` says which pods leave next, `case` what a gate looks at,
`evaluate` asks two readings, and `convergence` only reports.
"""
