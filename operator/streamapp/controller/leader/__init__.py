"""Elects one leading replica by a Lease, and tells the other parts whether this process leads."""
