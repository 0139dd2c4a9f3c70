"""How Spark starts, on this machine or on a cluster, and the options that say so."""
