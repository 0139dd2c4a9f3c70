"""`kubectl streamapp`: what people ask on a terminal. Reads the API server and writes nothing to it.

`screen` is the status of one StreamApp as a renderable, `overview` that of many as a table, `explaining` the same in
sentences; all three are pure functions of what was read and of the time. `view` is what they have in common. `root` is
the command line, `reading` asks the API server, `watching` follows it, `failures` tells what went wrong.
"""
