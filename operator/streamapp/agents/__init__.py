"""HTTP client of the agents in the pods: reads their reports, and announces which processes leave.

The only owner of requests to pods. `client` sends them, `answers` has their results; both know nothing of Kubernetes
and decide nothing. Every error is a value with a sentence, so that one unreachable agent does not affect the others.
"""
