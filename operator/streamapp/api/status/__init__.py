"""From a decision to `status`: the only bridge between the core and the resource.

`translate` is the entrance, `conditions` and `progress` are its parts, `throttle` says when a status is worth a write.
"""
