"""The StreamApp resource: its schema, what it means to the core, and the objects that are made of it.

Pure: nothing here talks to anybody. Read in this order:

1.  `v1alpha1` is the resource as users and the API server see it: `spec`, `status`, and what their fields are made of.
    `crd` writes its schema to `crds/`.
2.  `validation` turns an object from the API server into a `StreamApp`, or into sentences about what is wrong with it.
3.  `status.translate` is the only bridge to the core and back: `app_of`, `policy_of`, `status_of`.
4.  `objects` builds the StatefulSet and what belongs to it; `names` are the words on all of these, and
    `managed_fields` tells who wrote them.
5.  `http` is what the operator answers to `kubectl streamapp`.
"""
