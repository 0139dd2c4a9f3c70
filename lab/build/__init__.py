"""Turns sources into the programs and images that the lab runs, once per content.

`plan.build_all` is the door; everything it makes lies in the cache folder of the settings, addressed by a hash of what
it was made from. Nothing here starts a cluster.

Beside the cache only what the tools keep for themselves is written, where they keep it for every project of this user:
Go's build and module caches (`go env GOCACHE GOMODCACHE`) and Maven's repository (`~/.m2/repository`). They are worth
sharing, and `go clean -cache -modcache` empties the larger two. `plan.disk_needed` says how much room all of it takes.
"""
