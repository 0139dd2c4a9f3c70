"""What to do: the branches of a decision, and the plan of one pass.

`scale_down` holds pods or takes the next step, `open_step` brings a step to its end, `rollout` restarts pods,
`rebalance_trigger` and `announcement` speak to the group and the agents, `beside` cleans up. `plan` orders all of it,
and `decision` is the result.
"""
