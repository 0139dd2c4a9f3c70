"""What users noticed: the gap meter and the count check, read from the topics alone.

`lab.meter.measure` is the way in: `measure_gaps`, `check_counts`, `wait_until_caught_up`, called by the lab's commands,
its scenarios and the benchmarks. `lab.meter.table` shows their reports. `gaps` and `counts` decide and do no I/O;
`topics` is the only module that talks to a broker; `outputs` knows what the demo application writes.

Nothing here asks the application, the operator or Kubernetes: a meter that trusted what it measures would be none.
It only reads. It joins no consumer group, commits nothing and changes no topic.
"""
