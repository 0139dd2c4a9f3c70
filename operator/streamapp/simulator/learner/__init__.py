"""Our own task assignor as the model: `dev.streamapp.assignor.core`, rule by rule.

`assignment.assign` is the only door. One module stands for one Java class of `agent/assignor`.
"""
