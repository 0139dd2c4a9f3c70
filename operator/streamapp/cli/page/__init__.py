"""Fetches the report that the pipeline's job left on its volume."""
