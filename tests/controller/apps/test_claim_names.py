"""StreamApps whose StatefulSets would have volume claims of the same names."""

from collections.abc import Mapping
from typing import Any

import pytest

from streamapp.controller.apps import claim_names
from streamapp.kube.client.kinds import Key
from tests.streamapps import ABSENT, a_streamapp, stored

OWN = a_streamapp({"spec.state.claimName": "state-of"}, name="words")
"""With claims such as `state-of-words-0`."""
OLDER, YOUNGER = "2026-11-20T11:00:00Z", "2026-11-20T13:00:00Z"


def served_instead(
    changes: Mapping[str, Any], *, name: str = "of-words", namespace: str = "demo", has: bool = False, own: bool = False
) -> bool:
    """Whether another StreamApp is served in place of ours.

    Args:
        changes: Of the other one.
        name: Of the other one.
        namespace: Of the other one.
        has: Whether the other one has a StatefulSet.
        own: Whether ours has one.
    """
    other = stored({"metadata.uid": "another", "metadata.creationTimestamp": OLDER, **changes}, name=name)
    others = [(Key("demo", "words"), stored(name="words")), (Key(namespace, name), other)]
    found = claim_names.fault(OWN, others, has_statefulset=own, can_have_statefulset=lambda *_: has)
    assert found is None or f"those of StreamApp {name};" in found
    return found is not None


def test_an_older_streamapp_is_served_instead_if_its_claims_have_the_same_names() -> None:
    assert served_instead({})
    assert served_instead({"spec.state.claimName": "state"})
    assert not served_instead({"metadata.creationTimestamp": YOUNGER})


@pytest.mark.parametrize(("has", "own"), [(True, False), (False, True)])
def test_the_one_that_has_a_statefulset_counts_whichever_is_older(*, has: bool, own: bool) -> None:
    for created in (OLDER, YOUNGER):
        assert served_instead({"metadata.creationTimestamp": created}, has=has, own=own) is has


def test_other_names_another_namespace_and_no_state_take_no_claims() -> None:
    assert not served_instead({"spec.state.claimName": "data"})
    assert not served_instead({}, name="words-of")
    assert not served_instead({}, namespace="other")
    assert not served_instead({"spec.state": ABSENT})
    assert not served_instead({"spec.state": "unreadable"})


def test_a_streamapp_without_state_has_no_claims() -> None:
    own = a_streamapp({"spec.state": ABSENT})
    others = [(Key("demo", "other"), stored(name="other"))]
    assert claim_names.fault(own, others, has_statefulset=False, can_have_statefulset=lambda *_: True) is None
