"""What the judge asks of a user's override: it counts for the pods of one hold, and for nothing that comes later."""

from typing import Any

from streamapp.api.names import OVERRIDE

Json = dict[str, Any]


class OverrideJudge:
    """Of the override of one StreamApp.

    The hold that it names is over once an operator has said of this spec that nothing is to be removed. It does not
    matter what an operator could do meanwhile: a dry run and an invalid spec end a hold like any other spec.
    """

    def __init__(self) -> None:
        self._annotation = ""
        self._is_over = False
        self._lowest = 0
        """The replicas that were desired when it was given: it says nothing of the pods below."""

    def changed(self, app: Json | None, statefulset: Json | None) -> None:
        """Something of the StreamApp or its StatefulSet has changed."""
        if app is None or statefulset is None:
            return
        desired, metadata = app["spec"]["replicas"], app["metadata"]
        annotation = metadata.get("annotations", {}).get(OVERRIDE, "")
        if annotation != self._annotation:
            self._annotation, self._is_over, self._lowest = annotation, False, desired
        is_seen = app.get("status", {}).get("observedGeneration") == metadata["generation"]
        self._is_over |= is_seen and desired >= statefulset["spec"]["replicas"]

    def removal(self, why: str, replicas: int) -> str | None:
        """Say what is wrong with a removal down to so many pods that an operator bases on an override, if anything."""
        if not self._annotation:
            return "forced by an override that no user gave"
        if self._annotation.partition(" ")[2] != why:
            return f"forced for {why!r}, and the user said {self._annotation!r}"
        if self._is_over:
            return "forced by an override of a hold that was called off before"
        return None if replicas >= self._lowest else f"forced below {self._lowest}, of which the user said nothing"
