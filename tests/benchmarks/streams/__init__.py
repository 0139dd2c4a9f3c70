"""How long users of a task wait by what happens to a group, in the streams protocol and beside it in the classic one.

Bare JVMs with agents on one broker: `python -m tests.benchmarks.streams`, or `make bench-streams`. The operator's own
client evicts and raises standbys; the benchmark says when.
"""
