"""Topics: partition counts and settings, leaders, offsets, and the last applied record of a partition."""
