"""`make bench-fleet`: the operator as a process of its own, with very many applications."""
