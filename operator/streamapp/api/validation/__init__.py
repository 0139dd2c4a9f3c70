"""From an object of the API server to a `StreamApp`, or to sentences about what is wrong with it.

`parse` is the entrance, `faults` turns pydantic's errors into sentences, `conflicts` finds other StreamApps with the
same application ID.
"""
