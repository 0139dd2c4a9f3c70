"""The lab's command line: `python -m lab`.

Each command is thin: it asks a cluster or a scenario and shows the answer. Exit codes: 0 done, 1 a `LabError`,
2 wrong words; `exec` gives the command's own.
"""
