"""The end of a hold record: the annotation goes, whoever wrote it beside the operator."""

import asyncio
from typing import Any

import pytest

from streamapp.api.names import HOLD_RECORD
from streamapp.core.actions.decision import Fence
from streamapp.core.facts.hold_annotation import encode
from streamapp.core.facts.hold_record import Epoch, HoldRecord
from streamapp.kube.client.client import GRANTING_MANAGER, Json
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.client.kinds import STATEFUL_SETS
from streamapp.kube.objects import statefulsets
from tests.kube.objects.test_fences import KEY, NAME, NAMESPACE, Client

RECORD = HoldRecord(epoch=Epoch(lease=1, counter=7))
TEXTS = [pytest.param(encode(RECORD), id="as it is"), pytest.param("{}", id="with another text")]


class Annotated(Client):
    """Has a StatefulSet whose hold record another manager wrote, too."""

    async def begin(self, text: str, *, is_apply: bool) -> None:
        """Write the record, then as the other manager."""
        live = self.put("statefulsets", spec={"replicas": 4, "selector": {"a": "b"}, "template": {"a": "b"}})
        await self.grant(live, RECORD)
        place = {"namespace": NAMESPACE, "name": NAME}
        part = {"annotations": {HOLD_RECORD: text}}
        if is_apply:
            await self.apply(STATEFUL_SETS, {"metadata": {**place, **part}}, manager="another")
        else:
            await self.merge(STATEFUL_SETS, NAMESPACE, NAME, {"metadata": part}, manager="another")

    async def grant(self, live: Json, record: HoldRecord | None, replicas: int = 4) -> Json:
        """Write the record on exactly this version."""
        fence = Fence(live["metadata"]["uid"], live["metadata"]["resourceVersion"])
        return await statefulsets.grant(self, KEY, fence, replicas, record)


def owners(live: Json) -> dict[str, Any]:
    """Whose the annotations and the replicas are."""
    return {entry["manager"]: entry["fieldsV1"] for entry in live["metadata"]["managedFields"] if entry["fieldsV1"]}


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("is_apply", [True, False], ids=["applied", "patched"])
def test_a_hold_record_ends_although_another_manager_wrote_it_too(text: str, *, is_apply: bool) -> None:
    async def main() -> None:
        client = Annotated()
        await client.begin(text, is_apply=is_apply)
        ended = await client.grant(client.live("statefulsets"), None, 5)
        assert ended == client.live("statefulsets")
        assert ended["spec"]["replicas"] == 5
        assert HOLD_RECORD not in ended["metadata"].get("annotations", {})
        assert owners(ended) == {GRANTING_MANAGER: {"f:spec": {"f:replicas": {}}}}

    asyncio.run(main())


@pytest.mark.guarantee(2)
def test_a_hold_record_that_was_written_anew_meanwhile_stays() -> None:
    class Beaten(Annotated):
        async def merge(self, *of_all: Any, **by_name: Any) -> Json:
            if by_name["manager"] == GRANTING_MANAGER:
                self.put("statefulsets", **{**self.live("statefulsets"), "status": {"replicas": 3}})
            return await super().merge(*of_all, **by_name)

    async def main() -> None:
        client = Beaten()
        await client.begin("{}", is_apply=False)
        with pytest.raises(ConflictError):
            await client.grant(client.live("statefulsets"), None)
        assert client.live("statefulsets")["metadata"]["annotations"] == {HOLD_RECORD: "{}"}

    asyncio.run(main())
