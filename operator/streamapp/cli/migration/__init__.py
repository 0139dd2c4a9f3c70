"""What `migrate` knows: what stands in the way, what it costs, the next write; `requests` reads and writes."""
