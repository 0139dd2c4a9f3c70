"""All dangers at once, from a random seed: what is played, how, and what came of it.

Never shares a rule with the operator: it writes what users, autoscalers, nodes and kernels do, and counts afterwards.
"""
