"""Makes a release from a commit, signs it, and checks one: what `make release` and `make verify-release` call.

`build` makes the same bytes from the same commit wherever the clone lies, `sign` adds signatures by keys that the
caller names, and `verification` is one file of the standard library that reads nothing but the release and the public
keys. Nothing here publishes: whatever is made stays in one folder.
"""
