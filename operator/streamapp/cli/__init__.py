"""`kubectl streamapp`: what people ask and order on a terminal.

`screen` is the status of one StreamApp as a renderable, `overview` that of many as a table, `explaining` the same in
sentences; all three are pure functions of what was read and of the time. `view` is what they have in common. `scaling`,
`orders`, `releasing` and `history` say, as purely, what a command would do or has to tell; the module beside each that
ends in `command` or `commands` asks and shows. `root` is the command line, `reading` asks the API server, `writing`
is the only one that writes to it, `watching` follows it, `failures` tells what went wrong.
"""
