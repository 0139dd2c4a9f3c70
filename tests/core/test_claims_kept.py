"""`Retain` comes into force by itself where no template is written: in a pause, and while a step is open."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import Fence, KeepClaims
from streamapp.core.decide import decide
from streamapp.core.reasons import Reason
from tests.builders import POLICY, a_record, a_snapshot, a_step, pods

pytestmark = pytest.mark.guarantee(4)

UNWRITTEN = {"template_is_written": False, "deletes_kept_claims": True}
OPEN = {"record": replace(a_record(step=a_step()), hold=None), "workload": {"pods": pods(4)}}


@pytest.mark.parametrize(
    ("changes", "is_kept"),
    [
        pytest.param({"app": {"paused": True}}, True, id="in a pause"),
        pytest.param({"app": {"fault": "the API server refuses it"}}, True, id="while it refuses the template"),
        pytest.param({"app": {"deleting": True}}, True, id="while the StreamApp is being deleted"),
        pytest.param(OPEN, True, id="while a step is open"),
        pytest.param({}, False, id="the template has it, too"),
        pytest.param({"app": {"paused": True}, "statefulset": {"deletes_kept_claims": False}}, False, id="it stands"),
        pytest.param({"app": {"paused": True}, "statefulset": {"is_half_made": True}}, False, id="a half-made one"),
        pytest.param({"app": {"paused": True}, "statefulset": {"is_ours": False}}, False, id="of another owner"),
        pytest.param({"app": {"paused": True, "dry_run": True}}, False, id="a dry run"),
    ],
)
def test_what_keeps_claims_is_written_by_itself(changes: dict[str, Any], is_kept: bool) -> None:
    given = {"desired": 3, "record": None, **changes, "statefulset": {**UNWRITTEN, **changes.get("statefulset", {})}}
    snapshot = a_snapshot(**given)
    statefulset = snapshot.workload.statefulset
    assert statefulset is not None
    fence = Fence(statefulset.uid, statefulset.resource_version)
    step = KeepClaims(fence=fence, reason=Reason.TemplateUnwritten)
    plan = decide(snapshot, POLICY).plan
    assert [one for one in plan if isinstance(one, KeepClaims)] == ([step] if is_kept else [])
    assert not is_kept or plan[-1] == step
