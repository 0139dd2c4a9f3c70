"""What `adopt` and `disown` decide, from what the API server shows: findings, manifests, the next write. Pure."""
