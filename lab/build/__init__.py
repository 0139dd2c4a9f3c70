"""Turns sources into the programs and images that the lab runs, once per content.

`plan.build_all` is the door; everything it makes lies in the cache folder of the settings, addressed by a hash of what
it was made from. Nothing here starts a cluster or writes outside the cache.
"""
