"""The answers of the operator's own port: `messages` are their models, `build` makes them of the last pass."""
