from datetime import UTC, datetime

import pytest

from streamapp.api.authorship import asked_at, told_at
from tests.streamapps import Json


def written(*entries: object) -> Json:
    return {"metadata": {"managedFields": list(entries)}}


def at(minute: int) -> datetime:
    return datetime(2026, 11, 21, 12, minute, tzinfo=UTC)


def test_the_status_and_the_rest_have_times_of_their_own() -> None:
    resource = written(
        {"manager": "kubectl", "time": "2026-11-21T12:01:00Z"},
        {"manager": "autoscaler", "subresource": "scale", "time": "2026-11-21T12:02:00Z"},
        {"manager": "streamapp-operator", "subresource": "status", "time": "2026-11-21T12:03:00Z"},
        {"manager": "old-operator", "subresource": "status", "time": "2026-11-21T12:00:00Z"},
    )
    assert (told_at(resource), asked_at(resource)) == (at(3), at(2))


@pytest.mark.parametrize(
    "resource",
    [
        {},
        {"metadata": None},
        {"metadata": {"managedFields": "none"}},
        written(),
        written("text"),
        written({"manager": "kubectl"}),
        written({"time": "yesterday"}),
        written({"time": 5}),
        written({"time": "2026-11-21T12:01:00"}),
    ],
    ids=str,
)
def test_what_is_not_on_record_is_not_known(resource: Json) -> None:
    assert (told_at(resource), asked_at(resource)) == (None, None)
