"""What happened when: incidents, marks of rollouts and crashes, which process ran which task, links to a time."""
