"""What the facts mean: who is where, what runs, and which copies could take over.

`evidence.Evidence` is derived once per decision and handed on. `membership` places members in pods, `agent_views` says
which agents can be relied on, `running_tasks` and `coverage` judge tasks and copies, `learner_source` says where copies
come from, and `readings` when two readings agree. Nothing here says whether a pod may go.
"""
