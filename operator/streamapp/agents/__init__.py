"""Speaks to the agents in the pods over HTTP: reads their reports, and tells them who leaves.

The only owner of requests to pods. `client` sends them, `answers` are what comes back; both know nothing of Kubernetes
and decide nothing. Every error is a value with a sentence: one pod that is silent must not keep the others from being
heard.
"""
