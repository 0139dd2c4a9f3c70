"""Silver: states, times behind, rebalances and steps of each application, made of bronze."""
