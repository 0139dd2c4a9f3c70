"""Contracts on the wire: bytes that others wrote or will read, as plain values.

Pure like the core, and above it: bytes in, values out. Sockets, HTTP and clocks belong to the layers above.
"""
