"""Writes that rest on what was read: where that is another object or another version by now, nothing is written."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from streamapp.api.names import APPLICATION_ID, PROCESS_ID
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.kube.client.client import Check, Json
from streamapp.kube.client.errors import ConflictError, InvalidError, NotFoundError
from streamapp.kube.client.kinds import Key
from streamapp.kube.objects import claims, events, leases, owned_objects, pods, statefulsets
from streamapp.kube.objects.leases import Lease, LeaseSpec
from tests.kube.object_store import ObjectStore, Request
from tests.kube.store_client import StoreClient, answer_of
from tests.streamapps import a_streamapp

NAMESPACE, NAME = "demo", "counter"
KEY = Key(NAMESPACE, NAME)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE = ProcessId.parse("00000000-0000-4000-8000-000000000001")
OTHER = ProcessId.parse("00000000-0000-4000-8000-000000000002")
RECORDED = {APPLICATION_ID: "wordcount", PROCESS_ID: str(ONE)}
SPEC = LeaseSpec(holder="one", seconds=15, transitions=1, acquired_at="", renewed_at="")


class Client(StoreClient):
    """The product's, on a store."""

    def __init__(self, refusal: NotFoundError | None = None) -> None:
        self.store, self.refusal = ObjectStore(lambda: NOW), refusal

    async def deliver(self, request: Request, what: str, last_check: Check | None) -> Json:
        if self.refusal is not None:
            raise self.refusal
        if last_check is not None:
            last_check()
        return answer_of(self.store, request, what)

    def put(self, plural: str, **fields: Any) -> Json:
        """Write an object as another one does; give it as it is then."""
        metadata = {"namespace": NAMESPACE, "name": NAME, **fields.pop("metadata", {})}
        return self.store.put(plural, {"metadata": metadata, **fields})

    def live(self, plural: str) -> Json:
        """An object as it is."""
        found = self.store.get(plural, NAMESPACE, NAME)
        assert found is not None
        return found


def refused(writing: Awaitable[object], match: str = ".") -> None:
    """Expect a conflict."""

    async def main() -> None:
        with pytest.raises(ConflictError, match=match):
            await writing

    asyncio.run(main())


@pytest.mark.guarantee(2)
def test_a_pod_that_has_changed_since_it_was_read_is_not_deleted() -> None:
    client = Client()
    read = client.put("pods")
    now = client.put("pods", status={"phase": "Failed"})
    refused(pods.restart(client, read))
    assert client.live("pods") == now
    asyncio.run(pods.restart(client, now))
    assert client.store.get("pods", NAMESPACE, NAME) is None


def test_a_pod_that_was_made_anew_is_not_ended_in_place_of_the_one_that_was_read() -> None:
    client = Client()
    read = client.put("pods")
    client.store.remove("pods", NAMESPACE, NAME)
    now = client.put("pods")
    refused(client.end_pod(read, grace_seconds=0))
    assert client.live("pods") == now


@pytest.mark.guarantee(5)
def test_a_process_id_on_record_is_not_replaced() -> None:
    client, app = Client(), a_streamapp()
    read = client.put("persistentvolumeclaims", metadata={"annotations": RECORDED})
    refused(claims.record_process_id(client, app, read, Ordinal(0), OTHER), f"it has the process ID {ONE} on record")
    assert client.live("persistentvolumeclaims") == read


@pytest.mark.guarantee(5)
def test_a_process_id_that_was_recorded_since_the_claim_was_read_is_not_replaced() -> None:
    client, app = Client(), a_streamapp()
    read = client.put("persistentvolumeclaims")
    now = client.put("persistentvolumeclaims", metadata={"annotations": RECORDED})
    refused(claims.record_process_id(client, app, read, Ordinal(0), OTHER))
    assert client.live("persistentvolumeclaims") == now


@pytest.mark.guarantee(2)
def test_a_template_is_not_written_over_a_statefulset_that_has_changed_since() -> None:
    client = Client()
    read = client.put("statefulsets", spec={"replicas": 3})
    now = client.put("statefulsets", spec={"replicas": 4})
    manifest = {"metadata": {"namespace": NAMESPACE, "name": NAME}, "spec": {"template": {"image": "app:2"}}}
    refused(statefulsets.write_template(client, manifest, read))
    assert client.live("statefulsets") == now


@pytest.mark.guarantee(2)
def test_a_lease_is_not_written_over_what_another_replica_wrote_since() -> None:
    client = Client()
    read = client.put("leases", spec={"holderIdentity": "one"})["metadata"]
    now = client.put("leases", spec={"holderIdentity": "two"})
    refused(leases.write(client, KEY, Lease(read["uid"], read["resourceVersion"], SPEC), SPEC))
    assert client.live("leases") == now


def test_a_lease_that_is_gone_is_read_again_and_ends_nothing() -> None:
    client = Client(NotFoundError("PATCH lease", "there is none", "make it"))
    refused(leases.write(client, KEY, Lease("uid-1", "1", SPEC), SPEC), "there is none .it is read again")


@pytest.mark.parametrize(
    ("plural", "write"),
    [
        (
            "services",
            lambda client, manifest, _: owned_objects.apply_service(client, manifest, "own"),
        ),
        (
            "poddisruptionbudgets",
            lambda client, manifest, live: owned_objects.apply_budget(client, manifest, live, "own"),
        ),
    ],
    ids=["Service", "budget"],
)
def test_an_object_of_another_owner_is_not_touched(
    plural: str, write: Callable[[Client, Json, Json], Awaitable[None]]
) -> None:
    client = Client()
    live = client.put(plural, metadata={"ownerReferences": [{"uid": "another", "controller": True}]}, spec={"of": 1})
    manifest = {"metadata": {"namespace": NAMESPACE, "name": NAME}, "spec": {"of": 2}}

    async def main() -> None:
        with pytest.raises(InvalidError, match="an object of this name has another owner"):
            await write(client, manifest, live)

    asyncio.run(main())
    assert client.live(plural) == live


def test_an_event_is_about_the_streamapp_that_was_read_and_no_later_one_of_its_name() -> None:
    client = Client()
    app = {"apiVersion": "streamapp.dev/v1alpha1", "kind": "StreamApp", **client.put("streamapps")}
    asyncio.run(events.publish(client, app, reason="Held", note="It waits.", warning=False, at=NOW, instance="one"))
    (about,) = [stored.body["regarding"] for (plural, *_), stored in client.store.objects.items() if plural == "events"]
    assert about == {
        "apiVersion": "streamapp.dev/v1alpha1",
        "kind": "StreamApp",
        "namespace": NAMESPACE,
        "name": NAME,
        "uid": app["metadata"]["uid"],
        "resourceVersion": app["metadata"]["resourceVersion"],
    }
