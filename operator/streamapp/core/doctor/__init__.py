"""What is wrong with one application, for `kubectl streamapp doctor`.

`examine` asks all checks about a `subject`; each check gives diagnoses of `diagnoses`, or says what it could not read.
No decision depends on it.
"""
