"""The operator's flight record, copied out of its pods, and the report that the pipeline makes from it."""
