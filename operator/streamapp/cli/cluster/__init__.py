"""Talks to the API server: reads and writes StreamApps, finds the operator's leader, and words the errors."""
