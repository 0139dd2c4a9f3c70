"""A process that does not know all StreamApps yet creates nothing: an older one can have the same application ID."""

import asyncio
from typing import Any

import pytest

from streamapp.api.names import HOLD_RECORD
from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.ports import ApplicationGroup
from streamapp.controller.process import Operator
from streamapp.controller.settings import Settings
from streamapp.core.facts.hold_annotation import decode, encode
from streamapp.core.facts.hold_record import Epoch, HoldRecord
from streamapp.kube.client.client import GRANTING_MANAGER
from streamapp.kube.client.kinds import STATEFUL_SETS, Key
from tests.controller.doubles.bench import NAME, a_stream_app
from tests.controller.doubles.fake_group import FakeGroup
from tests.controller.doubles.fake_pods import FakePod
from tests.controller.test_namespaces import Cluster
from tests.kube.object_store import RefusalError, Request
from tests.prove.virtual_time import VirtualLoop, run

Json = dict[str, Any]
OLDER, YOUNGER = Key("two", NAME), Key("one", NAME)


class Rivals(Operator):
    """The product's operator over an older StreamApp in one namespace and a younger one in another."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.cluster = Cluster(loop)
        self.others: list[FakePod] = []
        """Pods of nobody here that are in the group."""
        self._group = FakeGroup("", lambda: self.others, loop.now)
        for key, day in ((OLDER, 1), (YOUNGER, 2)):
            app = a_stream_app()
            created = f"2026-01-0{day}T00:00:00Z"
            metadata = {"name": key.name, "namespace": key.namespace, "creationTimestamp": created}
            self.cluster.store.put("streamapps", {**app, "metadata": metadata})
        super().__init__(Settings(namespaces=("one", "two")), self.cluster, loop.now, loop.time)
        self._listing: list[asyncio.Task[None]] = []

    def connect(self, _: ClusterAccess) -> ApplicationGroup:
        return self._group

    async def begin(self, first: Key = YOUNGER) -> None:
        """Receive the younger one at once, and list as the process does."""
        self._listing = [asyncio.create_task(self.resync()), asyncio.create_task(self.hear())]
        live = self.cluster.store.get("streamapps", first.namespace, first.name)
        assert live is not None
        self.on_streamapp_event(first, live, is_gone=False)

    async def hear(self) -> None:
        """Stand where the watches of StatefulSets are: list them again and again, where that can be."""
        while True:
            for namespace in {OLDER.namespace, YOUNGER.namespace} - self.cluster.gone:
                known = (one.body for place, one in self.cluster.store.objects.items() if place[1] == namespace)
                found = [body for body in known if body.get("kind") == STATEFUL_SETS.name]
                self.cache.replace(STATEFUL_SETS, namespace, found, str(self.cluster.store.version))
            await asyncio.sleep(1.0)

    async def end(self) -> None:
        """Stop."""
        for one in self._listing:
            one.cancel()
        await self.close()

    def replicas(self, key: Key) -> int | None:
        """Of its StatefulSet; None without one."""
        live = self.cluster.store.get("statefulsets", key.namespace, key.name)
        return None if live is None else int(live["spec"]["replicas"])

    def stalled(self, key: Key) -> str:
        """The message of its condition `Stalled`."""
        status: Json = (self.cluster.store.get("streamapps", key.namespace, key.name) or {}).get("status", {})
        found = (one for one in status.get("conditions", ()) if one["type"] == "Stalled" and one["status"] == "True")
        return next((f"{one['reason']}: {one['message']}" for one in found), "")

    def leave_record(self, record: HoldRecord) -> Json:
        """Leave a hold record of a former process on the younger one's StatefulSet; give the object."""
        live = self.cluster.store.get("statefulsets", YOUNGER.namespace, YOUNGER.name) or {}
        annotations = {**live["metadata"].get("annotations", {}), HOLD_RECORD: encode(record)}
        return self.cluster.store.put(
            "statefulsets", {**live, "metadata": {**live["metadata"], "annotations": annotations}}
        )

    def record(self) -> HoldRecord:
        """The record as it is."""
        live = self.cluster.store.get("statefulsets", YOUNGER.namespace, YOUNGER.name) or {}
        found = decode(live["metadata"]["annotations"][HOLD_RECORD])
        assert isinstance(found, HoldRecord)
        return found

    def remove_late(self, known: Json) -> None:
        """Send the removal that a former process had judged on that version."""
        metadata = {name: known["metadata"][name] for name in ("namespace", "name", "uid", "resourceVersion")}
        query = {"fieldManager": GRANTING_MANAGER, "force": "true"}
        body = {"metadata": metadata, "spec": {"replicas": 0}}
        self.cluster.store.answer(Request("PATCH", "statefulsets", *_place(YOUNGER), "", query, body))

    def desired(self, key: Key, replicas: int) -> None:
        """Write the desired replicas as a user does."""
        live = self.cluster.store.get("streamapps", key.namespace, key.name) or {}
        made = self.cluster.store.put("streamapps", {**live, "spec": {**live["spec"], "replicas": replicas}})
        self.on_streamapp_event(key, made, is_gone=False)


def _place(key: Key) -> tuple[str, str]:
    return key.namespace, key.name


def test_a_younger_streamapp_gets_no_statefulset_although_the_older_one_is_listed_late() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Rivals(loop)
        operator.cluster.seconds = {"two": 3.0}
        await operator.begin()
        await asyncio.sleep(60)
        assert (operator.replicas(OLDER), operator.replicas(YOUNGER)) == (1, None)
        assert operator.stalled(YOUNGER).startswith("ApplicationIdTaken")
        await operator.end()

    run(loop, main())


@pytest.mark.guarantee(4)
def test_of_two_streamapps_whose_claims_have_the_same_names_the_older_one_is_served() -> None:
    loop, older, younger = VirtualLoop(), Key("one", NAME), Key("one", f"of-{NAME}")

    async def main() -> None:
        operator = Rivals(loop)
        for key in (OLDER, YOUNGER):
            operator.cluster.store.remove("streamapps", key.namespace, key.name)
        for key, day, claim in ((older, 1, "state-of"), (younger, 2, "state")):
            app = a_stream_app()
            spec = {**app["spec"], "applicationId": key.name, "state": {**app["spec"]["state"], "claimName": claim}}
            created = f"2026-01-0{day}T00:00:00Z"
            metadata = {"name": key.name, "namespace": key.namespace, "creationTimestamp": created}
            operator.cluster.store.put("streamapps", {**app, "metadata": metadata, "spec": spec})
        await operator.begin(younger)
        await asyncio.sleep(60)
        assert (operator.replicas(older), operator.replicas(younger)) == (1, None)
        assert operator.stalled(older) == ""
        assert operator.stalled(younger).startswith("InvalidSpec")
        assert f"state-of-{NAME}-0 and following are those of StreamApp {NAME};" in operator.stalled(younger)
        operator.cluster.store.remove("streamapps", older.namespace, older.name)
        await asyncio.sleep(120)
        assert (operator.replicas(younger), operator.stalled(younger)) == (1, "")
        await operator.end()

    run(loop, main())


def test_nothing_is_created_while_a_namespace_is_silent_and_all_of_it_as_soon_as_it_was_listed() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Rivals(loop)
        operator.cluster.gone, operator.cluster.answers = {"two"}, 503
        await operator.begin()
        await asyncio.sleep(300)
        assert operator.replicas(YOUNGER) is None
        assert operator.stalled(YOUNGER).startswith("NamespaceUnlisted")
        assert "two" in operator.stalled(YOUNGER)
        operator.cluster.gone = set()
        operator.cluster.store.remove("streamapps", OLDER.namespace, OLDER.name)
        await asyncio.sleep(35)
        assert (operator.replicas(YOUNGER), operator.stalled(YOUNGER)) == (1, "")
        await operator.end()

    run(loop, main())


@pytest.mark.guarantee(3)
@pytest.mark.parametrize("status", [403, 404])
def test_a_namespace_that_refuses_delays_a_creation_by_a_minute_where_nobody_else_is_in_the_group(status: int) -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Rivals(loop)
        operator.cluster.gone, operator.cluster.answers = {"two"}, status
        await operator.begin()
        await asyncio.sleep(40)
        assert operator.replicas(YOUNGER) is None
        await asyncio.sleep(20)
        assert (operator.replicas(YOUNGER), operator.stalled(YOUNGER)) == (1, "")
        await operator.end()

    run(loop, main())


def test_a_namespace_that_begins_to_refuse_instead_of_being_silent_is_noticed_at_once() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Rivals(loop)
        operator.cluster.gone, operator.cluster.answers = {"two"}, 503
        await operator.begin()
        await asyncio.sleep(65)
        assert operator.stalled(YOUNGER).startswith("NamespaceUnlisted")
        operator.cluster.answers = 403
        for _ in range(310):  # it is asked every 30 s
            if operator.namespaces.unlisted.silent:
                await asyncio.sleep(0.1)
        await asyncio.sleep(1)  # the pass that comes by itself is later
        assert (operator.replicas(YOUNGER), operator.stalled(YOUNGER)) == (1, "")
        await operator.end()

    run(loop, main())


def test_pods_of_others_in_the_group_stop_a_creation_for_as_long_as_they_are_there() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Rivals(loop)
        operator.cluster.gone = {"two"}
        operator.others = [FakePod(0, "10.9.9.9", "containerd://of-nobody")]
        await operator.begin()
        await asyncio.sleep(300)
        assert operator.replicas(YOUNGER) is None
        assert operator.stalled(YOUNGER).startswith("NamespaceUnlisted")
        assert "two; member " in operator.stalled(YOUNGER)
        operator.others.clear()
        await asyncio.sleep(150)  # the session timeout, a minute without them, and a look
        assert (operator.replicas(YOUNGER), operator.stalled(YOUNGER)) == (1, "")
        await operator.end()

    run(loop, main())


def test_a_namespace_that_goes_after_it_was_listed_delays_no_creation() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Rivals(loop)
        operator.cluster.store.remove("streamapps", YOUNGER.namespace, YOUNGER.name)
        listing = asyncio.create_task(operator.resync())
        await asyncio.sleep(10)
        operator.cluster.gone = {"two"}
        app = a_stream_app()
        other = {**app, "metadata": {"name": NAME, "namespace": "one"}, "spec": {**app["spec"], "applicationId": "new"}}
        operator.on_streamapp_event(YOUNGER, operator.cluster.store.put("streamapps", other), is_gone=False)
        await asyncio.sleep(5)
        assert operator.replicas(YOUNGER) == 1
        listing.cancel()
        await operator.close()

    run(loop, main())


@pytest.mark.parametrize("is_new", [False, True], ids=["the same process", "a new process"])
def test_an_older_streamapp_that_is_received_late_gets_no_statefulset_beside_that_of_the_younger_one(
    is_new: bool,
) -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = Rivals(loop)
        older = operator.cluster.store.get("streamapps", OLDER.namespace, OLDER.name) or {}
        operator.cluster.store.remove("streamapps", OLDER.namespace, OLDER.name)
        await operator.begin()
        await asyncio.sleep(30)
        assert operator.replicas(YOUNGER) == 1
        made = operator.cluster.store.put("streamapps", older)
        if is_new:
            await operator.end()
            store, operator = operator.cluster.store, Rivals(loop)
            operator.cluster.store = store
            await operator.begin()
        operator.on_streamapp_event(OLDER, made, is_gone=False)
        await asyncio.sleep(10)
        operator.desired(YOUNGER, 4)
        await asyncio.sleep(60)
        assert (operator.replicas(OLDER), operator.replicas(YOUNGER)) == (None, 4)
        assert operator.stalled(OLDER).startswith("ApplicationIdTaken")
        assert str(YOUNGER) in operator.stalled(OLDER)
        operator.cluster.store.remove("streamapps", YOUNGER.namespace, YOUNGER.name)
        operator.cluster.store.remove("statefulsets", YOUNGER.namespace, YOUNGER.name)
        await asyncio.sleep(130)
        assert operator.replicas(OLDER) == 1
        await operator.end()

    run(loop, main())


def test_of_two_with_a_statefulset_the_younger_does_not_grow_before_the_older_one_is_listed() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        older, operator = await next_process(loop)
        made = operator.cluster.store.put("streamapps", older)
        own = operator.cluster.store.get("statefulsets", YOUNGER.namespace, YOUNGER.name) or {}
        owner = [{"apiVersion": made["apiVersion"], "kind": "StreamApp", "name": OLDER.name, "controller": True}]
        metadata = {**own["metadata"], "namespace": OLDER.namespace, "uid": "its own"}
        metadata["ownerReferences"] = [{**owner[0], "uid": made["metadata"]["uid"]}]
        operator.cluster.store.put("statefulsets", {**own, "metadata": metadata})
        operator.cluster.seconds = {"two": 3.0}
        await operator.begin()
        operator.desired(YOUNGER, 4)
        await asyncio.sleep(60)
        assert operator.replicas(YOUNGER) == 1
        assert operator.stalled(YOUNGER).startswith("ApplicationIdTaken")
        await operator.end()

    run(loop, main())


@pytest.mark.guarantee(3)
@pytest.mark.parametrize("is_gone", [True, False], ids=["refused", "without an answer"])
def test_a_new_process_grants_a_raise_although_a_namespace_cannot_be_listed(is_gone: bool) -> None:
    loop = VirtualLoop()

    async def main() -> None:
        _, operator = await next_process(loop)
        operator.cluster.gone = {"two"} if is_gone else set()
        operator.cluster.seconds = {} if is_gone else {"two": 1_000.0}
        await operator.begin()
        operator.desired(YOUNGER, 4)
        await asyncio.sleep(1 if is_gone else 11)
        assert operator.replicas(YOUNGER) == 4
        await operator.end()

    run(loop, main())


@pytest.mark.guarantee(2)
def test_a_new_process_fences_a_hold_at_once_although_a_namespace_gives_no_answer() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = await next_process_beside_a_silent_namespace(loop)
        left = operator.leave_record(HoldRecord(epoch=Epoch(0, 5), hold=None, step=None))
        await operator.begin()
        await asyncio.sleep(2)
        assert (operator.record().epoch > Epoch(0, 5), operator.replicas(YOUNGER)) == (True, 1)
        with pytest.raises(RefusalError):
            operator.remove_late(left)
        await operator.end()

    run(loop, main())


@pytest.mark.guarantee(3)
def test_a_raise_waits_no_longer_where_the_early_fence_fails() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        operator = await next_process_beside_a_silent_namespace(loop)
        operator.leave_record(HoldRecord(epoch=Epoch(0, 5), hold=None, step=None))
        operator.cluster.refused_kinds = {"statefulsets"}
        loop.call_later(9.5, operator.cluster.refused_kinds.clear)
        operator.desired(YOUNGER, 4)
        await operator.begin()
        await asyncio.sleep(11)
        assert operator.replicas(YOUNGER) == 4
        await operator.end()

    run(loop, main())


async def next_process_beside_a_silent_namespace(loop: VirtualLoop) -> Rivals:
    """As `next_process`, and the namespace of the older StreamApp answers nothing."""
    _, operator = await next_process(loop)
    operator.cluster.seconds = {OLDER.namespace: 1_000.0}
    return operator


async def next_process(loop: VirtualLoop) -> tuple[Json, Rivals]:
    """Have one process serve the younger StreamApp for a while; give the older one, and the process after it."""
    former = Rivals(loop)
    older = former.cluster.store.get("streamapps", OLDER.namespace, OLDER.name) or {}
    former.cluster.store.remove("streamapps", OLDER.namespace, OLDER.name)
    await former.begin()
    await asyncio.sleep(30)
    assert former.replicas(YOUNGER) == 1
    await former.end()
    operator = Rivals(loop)
    operator.cluster.store = former.cluster.store
    return older, operator
