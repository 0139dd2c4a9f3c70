"""`kubectl streamapp`: the command line for people who run StreamApps.

- `app` has the commands, options and help; `__main__` runs it and gives the exit code; `completion` answers shells.
- `commands` has what each command does: read, ask, write, show.
- `model` has what a command can say about a StreamApp: values and sentences, without rich.
- `screens` lays a model out for a terminal, or as a document for programs.
- `cluster` is the only room that talks to the API server.
- `text` has what all screens share: durations, bars, the console.
"""
