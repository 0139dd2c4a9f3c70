"""Columns of all tables, and the store that adds a version of them as a whole."""
