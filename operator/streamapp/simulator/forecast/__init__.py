"""What another number of replicas would cause, for an application as it runs: moves, rounds, times. Pure.

`running` takes the application from the core's task table, `change` plays the change, `outcome` counts what it causes,
and `times` gives the seconds as a range over what is not known. `streams_change` plays what brokers assign, in every
way that nobody can exclude. The command line and the controller call it.
"""
