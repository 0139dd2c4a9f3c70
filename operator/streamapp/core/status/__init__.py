"""What the resource reports about one application; no decision depends on it.

`conditions` are the conditions of the status, `gaps` how long a task ran nowhere, `state_age` whether unused state can
still be brought up to date, `volume_warnings` what is wrong with volumes, `autoscaling` who drives the replicas,
`task_table` every task with its copies.
"""
