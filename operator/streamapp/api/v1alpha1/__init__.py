"""The StreamApp resource in version `v1alpha1`, as pydantic models: the source of the CRD.

`spec` is what users write, `status` what the operator answers. Docstrings of fields are the CRD's descriptions.
"""
