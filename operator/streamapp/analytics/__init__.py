"""From the operator's flight record to tables and figures, on Spark: bronze, then silver, then gold.

Reads the record that `streamapp.flightrecord.schema` describes, and takes the explanations of reasons from
`streamapp.core.reasons`. It uses nothing else of the operator, and no part of the operator uses it.
"""
