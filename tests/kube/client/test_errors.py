"""What an answer of the API server means."""

import pytest

from streamapp.kube.client.errors import ConflictError, KubeError, RefusedError, of_status

GOING = (
    'statefulsets.apps "wordcount" is forbidden: unable to create new content in namespace demo because it is being '
    "terminated"
)
NO_RIGHT = 'statefulsets.apps is forbidden: User "operator" cannot create resource "statefulsets" in namespace "demo"'


@pytest.mark.parametrize(("why", "meant"), [(GOING, ConflictError), (NO_RIGHT, RefusedError)])
def test_a_namespace_that_is_being_deleted_is_no_right_that_is_missing(why: str, meant: type[KubeError]) -> None:
    assert type(of_status(403, "apply statefulsets demo/wordcount", why)) is meant
