"""Whether pods may go: one function per question, each of which refuses by itself what it cannot see.

`chains` lists the gates of every kind of removal in the order in which they are asked. `safety_gates` guard every
removal; `coverage_gates`, `agent_gates` and `drain_gates` guard what a user can override. `candidates` says which pods
would be next, `case` what a gate looks at, and `evaluate` asks both readings.
"""
