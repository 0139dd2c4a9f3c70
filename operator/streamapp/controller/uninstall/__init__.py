"""What the chart's job does before the operator is uninstalled, so that nothing stays as only the operator needs it.

`command` is the entrance: it takes the Lease, so that no leader does anything meanwhile. `budgets` opens the
PodDisruptionBudgets, `standbys` puts back what the operator raised in groups of the streams protocol. The job needs no
right that the operator does not have.
"""
