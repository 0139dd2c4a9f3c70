"""Layouts: models as rich renderables for a terminal, or as plain documents for programs."""
