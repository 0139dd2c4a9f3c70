"""Benchmarks that need no cluster: they print figures, and judge nothing."""
