"""The objects that the operator reads and writes, and the rights that it needs for them."""
