"""The StreamApp resource: its schema, what it means to the core, and the objects that are made of it.

Pure: nothing here talks to anybody. Read in this order:

1.  `v1alpha1` is the resource as users and the API server see it; `durations`, `texts` and `rules` are what its fields
    are made of. `crd` writes its schema to `crds/`.
2.  `reading` turns an object from the API server into a `StreamApp`, or into sentences about what is wrong with it;
    `template` knows what may be wrong with a pod template.
3.  `translate` is the only bridge to the core and back: `app_of`, `policy_of`, `status_of`.
4.  `manifests` and `seeding` build the StatefulSet and what belongs to it; `names` are the words on all of these.
5.  `flight_record` is the contract of the flight record; `flight_log` finds what is news in a pass, `flight_lines` and
    `flight_places` say it.
"""
