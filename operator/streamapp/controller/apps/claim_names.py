"""Finds another StreamApp whose StatefulSet has claims of the same names: both would keep their state on one volume.

A StatefulSet uses claims by name alone, `<claimName>-<name>-<ordinal>`. So `b` as the claim name of `c-d` and `b-c` as
that of `d` are one. Called by `apps`; it reads what the watches told and decides nothing about pods.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamapp.api.v1alpha1.pod_template import mapping
from streamapp.api.v1alpha1.spec import State
from streamapp.api.validation.parse import StreamApp
from streamapp.kube.client.client import Json
from streamapp.kube.client.kinds import Key

_DEFAULT = str(State.model_fields["claim_name"].default)


def fault(
    streamapp: StreamApp,
    others: Iterable[tuple[Key, Json]],
    *,
    has_statefulset: bool,
    can_have_statefulset: Callable[[Key, str], bool],
) -> str | None:
    """Why a StreamApp must not be served, as a sentence: another one has its claims, or is older.

    Args:
        streamapp: The one that is asked about.
        others: StreamApps as last received; it may be among them.
        has_statefulset: Whether it has a StatefulSet.
        can_have_statefulset: Says of another one whether it has a StatefulSet, or whether that is not known.
    """
    metadata, state = streamapp.metadata, streamapp.spec.state
    if state is None:
        return None
    names = f"{state.claim_name}-{metadata.name}"
    own = not has_statefulset, metadata.creation_timestamp.isoformat(), metadata.uid
    for key, resource in others:
        if key.namespace != metadata.namespace or key.name == metadata.name or _names(key, resource) != names:
            continue
        other = mapping(resource.get("metadata"))
        uid, created = str(other.get("uid", "")), str(other.get("creationTimestamp", ""))
        if (not can_have_statefulset(key, uid), created.replace("Z", "+00:00"), uid) < own:
            return (
                f"spec.state.claimName: the volume claims {names}-0 and following are those of StreamApp {key.name}; "
                "delete this StreamApp, and create it with another name or another claimName"
            )
    return None


def _names(key: Key, resource: Mapping[str, Any]) -> str | None:
    """The names of its claims without the ordinal; None where it keeps no state."""
    state = mapping(resource.get("spec")).get("state")
    return f"{state.get('claimName', _DEFAULT)}-{key.name}" if isinstance(state, Mapping) else None
