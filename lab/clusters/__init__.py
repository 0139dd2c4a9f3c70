"""The clusters that the lab can use: its own embedded node, kind, or a context that the user allowed.

`choice.chosen` gives the one that `CLUSTER` names. All of them run the same manifests and images; `cluster` says what
each must offer.
"""
