"""A consumer group: reads its members, evicts one, triggers a rebalance, and finds groups with the same prefix."""
