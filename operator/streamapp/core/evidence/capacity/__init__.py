"""Whether the pods that stay have what the tasks of the others need: room on disk, memory, copies and zones."""
