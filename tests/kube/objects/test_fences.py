"""Writes that rest on what was read: where that is another object or another version by now, nothing is written."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from streamapp.api.names import APPLICATION_ID, HOLD_RECORD, PROCESS_ID
from streamapp.api.objects import manifests
from streamapp.core.actions.decision import Fence
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.kube.client.client import GRANTING_MANAGER, Check, Json
from streamapp.kube.client.errors import ConflictError, InvalidError, NotFoundError
from streamapp.kube.client.kinds import STATEFUL_SETS, Key
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


@pytest.mark.guarantee(4)
def test_a_retention_policy_is_not_written_over_a_statefulset_that_has_changed_since() -> None:
    client = Client()
    policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    read = client.put("statefulsets", spec={"persistentVolumeClaimRetentionPolicy": policy})
    now = client.put("statefulsets", spec={"persistentVolumeClaimRetentionPolicy": policy, "replicas": 4})
    refused(statefulsets.keep_claims(client, read, {"whenDeleted": "Retain"}))
    assert client.live("statefulsets") == now
    asyncio.run(statefulsets.keep_claims(client, now, {"whenDeleted": "Retain"}))
    written = {"persistentVolumeClaimRetentionPolicy": {**policy, "whenDeleted": "Retain"}, "replicas": 4}
    assert client.live("statefulsets")["spec"] == written


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


def half_made(client: Client) -> Json:
    """A StatefulSet of which only the first of the writes was made."""
    body = {
        "apiVersion": "apps/v1",
        "metadata": {"namespace": NAMESPACE, "name": NAME, "labels": {"streamapp.dev/app": NAME}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"streamapp.dev/app": NAME}}, "template": {"spec": {}}},
    }
    return asyncio.run(client.apply(STATEFUL_SETS, body, manager=GRANTING_MANAGER, force=False))


@pytest.mark.guarantee(3)
def test_replicas_alone_are_no_statefulset_so_a_half_made_one_is_raised_by_a_patch() -> None:
    client = Client()
    read = half_made(client)
    fence = Fence(read["metadata"]["uid"], read["metadata"]["resourceVersion"])
    with pytest.raises(InvalidError, match="Required value"):
        asyncio.run(statefulsets.grant(client, KEY, fence, 4, None))
    raised = asyncio.run(statefulsets.raise_to(client, read, fence, 4, None))
    assert raised["spec"] == {**read["spec"], "replicas": 4}
    assert raised["metadata"]["labels"] == read["metadata"]["labels"]


@pytest.mark.guarantee(2)
def test_a_raise_is_not_written_over_a_half_made_statefulset_that_has_changed_since() -> None:
    client = Client()
    read = half_made(client)
    fence = Fence(read["metadata"]["uid"], read["metadata"]["resourceVersion"])
    now = client.store.put("statefulsets", {**read, "spec": {**read["spec"], "replicas": 7}})
    refused(statefulsets.raise_to(client, read, fence, 4, None))
    assert client.live("statefulsets") == now


@pytest.mark.guarantee(2)
def test_a_creation_that_arrives_late_changes_no_statefulset_that_was_made_meanwhile() -> None:
    """Another try made it; replicas were raised since, a hold is on record, and the template was written anew."""
    client, app = Client(), a_streamapp(name=NAME)
    here = manifests.Installation(name="blue", seed_image="seed:1")
    late = manifests.statefulset(app, here)
    asyncio.run(statefulsets.create(client, late, 2))
    made = client.live("statefulsets")
    fence = Fence(made["metadata"]["uid"], made["metadata"]["resourceVersion"])
    raised = asyncio.run(statefulsets.grant(client, KEY, fence, 4, {HOLD_RECORD: "{}"}))
    asyncio.run(statefulsets.write_template(client, manifests.statefulset(app, here, raised), raised))
    now = client.live("statefulsets")
    refused(statefulsets.create(client, late, 2), "conflict with")
    assert client.live("statefulsets") == now
    assert (now["spec"]["replicas"], now["metadata"]["annotations"][HOLD_RECORD]) == (4, "{}")


class Overtaken(Client):
    """Between the first write of a creation and the second, something else is written to the StatefulSet."""

    def __init__(self, others: Callable[[Json], Awaitable[object]]) -> None:
        super().__init__()
        self._others, self._is_due = others, False

    async def deliver(self, request: Request, what: str, last_check: Check | None) -> Json:
        if self._is_due:
            self._is_due = False
            await self._others(self.live("statefulsets"))
        answer = await super().deliver(request, what, last_check)
        self._is_due = request.query.get("force") == "false"
        return answer


@pytest.mark.guarantee(4)
def test_the_second_write_of_a_creation_puts_no_former_template_back() -> None:
    """A process froze between the two; the one that took over wrote the template that the StreamApp has by now."""
    here = manifests.Installation(name="blue", seed_image="seed:1")
    former = a_streamapp({"spec.state.retention": {"whenDeleted": "Delete"}}, name=NAME)

    async def go_on(live: Json) -> None:
        await statefulsets.write_template(client, manifests.statefulset(a_streamapp(name=NAME), here, live), live)

    client = Overtaken(go_on)
    refused(statefulsets.create(client, manifests.statefulset(former, here), 2))
    policy = client.live("statefulsets")["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert policy == {"whenScaled": "Retain", "whenDeleted": "Retain"}


def test_a_creation_goes_on_after_the_statefulsets_controller_has_written_the_status() -> None:
    async def report(live: Json) -> None:
        client.store.put("statefulsets", {**live, "status": {"observedGeneration": 1}})

    client = Overtaken(report)
    here = manifests.Installation(name="blue", seed_image="seed:1")
    asyncio.run(statefulsets.create(client, manifests.statefulset(a_streamapp(name=NAME), here), 2))
    made = client.live("statefulsets")
    assert (made["status"], statefulsets.is_handed_over(made)) == ({"observedGeneration": 1}, True)
