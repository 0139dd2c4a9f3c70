"""`conformance`: runs the counter on the cluster of a user, and says what holds there; for `commands.conformance`."""
