"""Where the time of one hand-over goes, part by part: a bare broker, real JVMs, the agent in each of them.

`make bench-handover` runs it. `group` plays the moves, `stamps` reads the moments out of the logs, `parts` turns them
into durations, `page` writes the tables. No Kubernetes takes part: the benchmark announces and triggers as the
operator does.
"""
