"""Serves probes and metrics, and answers requests about tasks, findings and history."""
