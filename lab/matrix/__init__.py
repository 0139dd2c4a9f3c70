"""The matrix of launchers and versions: the agent and its assignor in applications started in many ways.

Bare processes on this machine's loopback addresses, one broker for all of them; no cluster is needed. `cells` says what
is tried, `applications` how each is started, `trial` what is done with it and `results` what it comes to.
"""
