"""A synthetic flight record of a fleet, with the truth about it; to try the pipeline and to test it."""
