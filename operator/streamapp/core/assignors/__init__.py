"""The broker's assignor of the streams group protocol, as a function: who gets which task.

`sticky` is compared with the Java classes by `make test PART=model`. Gates ask it before a pod goes, and `simulator`
plays it.
"""
