"""What a restart without coverage costs: figures where they are known, and the word unknown where not."""

from dataclasses import replace

import pytest

from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.restart_cost import cost_of_restart
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from tests.builders import a_snapshot, an_unreadable
from tests.support import example

BARE = example.members(3, standbys=False)
IDLE = (*example.members(2, standbys=False), example.member(2))
REPORTED = example.agents(BARE, state_bytes=1_234_567)
NO_TOPOLOGY = replace(a_snapshot(members=BARE), task_set=TopologyUnknown("two sub-topologies"))


@pytest.mark.parametrize(
    ("snapshot", "tasks", "records", "size", "silence"),
    [
        (a_snapshot(members=BARE, agents=REPORTED), "2 tasks", "at most 2,000,000", "at most 1,300,000", "unknown"),
        (a_snapshot(members=BARE), "2 tasks", "at most 2,000,000", "unknown", "unknown"),
        (NO_TOPOLOGY, "2 tasks", "unknown", "unknown", "unknown"),
        (a_snapshot(members=IDLE), "0 tasks", "at most 0", "unknown", "none"),
        (a_snapshot(readings=(an_unreadable(),)), "an unknown number of tasks", "unknown", "unknown", "unknown"),
    ],
)
def test_what_is_known_is_a_figure_and_the_rest_is_called_unknown(
    snapshot: Snapshot, tasks: str, records: str, size: str, silence: str
) -> None:
    assert cost_of_restart(Evidence(snapshot, ScalingPolicy(agent=True)), Ordinal(2)) == (
        f"The restart of ordinal 2 stops {tasks}; to restore elsewhere: records {records}, bytes {size}; "
        f"silence: {silence}."
    )
