"""A group of the streams protocol over several changes: its brokers' assignor, in every way that nobody can exclude.

`ways` says in which ways, `group` deals the tasks anew with each change of members or settings.
"""
