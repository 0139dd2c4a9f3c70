"""From the operator's flight record to tables and figures, on Spark: bronze, then silver, then gold.

Reads what `streamapp.flightrecord.schema` describes and nothing of the operator's; no part of the operator reads it.
"""
