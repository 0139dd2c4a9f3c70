"""Predicts assignments: the assignors of Kafka Streams, and ours, as pure functions.

No I/O, clock or randomness: values in, values out. `tests/model` compares each assignor with its Java class.
Nothing here decides whether a pod can leave; that is the core's.
"""
