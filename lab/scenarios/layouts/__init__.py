"""Which pod had which task: looked at several times a second, or read from every generation of the group."""
