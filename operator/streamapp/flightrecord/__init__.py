"""The flight record: what the operator saw and did, as lines of JSON; pure.

`schema` is the contract. `changes` finds what is new in a pass and makes its lines with the other modules.
`streamapp.controller.record` writes them.
"""
