"""What the lab plays through: each scenario deploys, acts, measures, and gives figures back.

Called by the commands, by the lab tests and by benchmarks; a scenario prints steps but no results.
"""
