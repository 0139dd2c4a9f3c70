"""Gold: figures by day and application, made of silver."""
