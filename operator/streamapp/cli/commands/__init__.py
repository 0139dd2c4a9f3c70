"""What each command does: read from the cluster, ask the user, write, and show the result."""
