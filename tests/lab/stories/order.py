"""In which order things happened, as the API server says it: what is asserted instead of seconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lab.scenarios.api_changes import Change
from lab.scenarios.observed_app import ObservedApp, record_of


@dataclass(frozen=True)
class Lowered:
    """One write that took replicas away."""

    before: int
    after: int
    hold_before: str
    """ID of the hold that was on record in the state before; empty where none was."""
    step: str
    """ID of the hold whose step the write itself put on record; empty where it put none."""


def lowered(changes: Sequence[Change]) -> Iterator[Lowered]:
    """Give each write that lowered the replicas of a StatefulSet, from all states that a watch saw of it."""
    former: dict[str, Any] | None = None
    for change in changes:
        now = change.object
        if former is not None and now["spec"]["replicas"] < former["spec"]["replicas"]:
            yield Lowered(
                former["spec"]["replicas"],
                now["spec"]["replicas"],
                record_of(former).get("hold", {}).get("id", ""),
                record_of(now).get("step", {}).get("holdId", ""),
            )
        former = now


def holds(changes: Sequence[Change]) -> list[str]:
    """Give the ID of each hold that was ever on record, in order."""
    found = [record_of(change.object).get("hold", {}).get("id", "") for change in changes]
    return list(dict.fromkeys(filter(None, found)))


def process_ids(one: ObservedApp) -> dict[int, str]:
    """Give the process ID of each ordinal, as the resource has it."""
    return {member["ordinal"]: member["processId"] for member in one.app.status()["members"]}


def writers_of_replicas(one: ObservedApp) -> set[str]:
    """Give who owns `spec.replicas` of the StreamApp, by its managed fields."""
    what = ("get", f"streamapp/{one.app.name}", "--namespace", one.app.namespace, "--show-managed-fields")
    return {
        entry["manager"]
        for entry in one.app.kubectl.json(*what)["metadata"]["managedFields"]
        if "f:replicas" in entry.get("fieldsV1", {}).get("f:spec", {})
    }
