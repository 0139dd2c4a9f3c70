"""Reads reports from the agents of all applications, sends them announcements, and compares topologies."""
