"""All dangers at once under load: when they are over, all converge and every record is counted as promised.

One short script, in which a node is lost. `make chaos SEEDS="1 2 3"` plays eight minutes of others.
"""

import os
from pathlib import Path

import pytest

from lab.clusters.cluster import Session
from lab.node.namespaces import INSIDE
from lab.scenarios.chaos.outcome import CameTo
from lab.scenarios.chaos.run import CHAOS_KINDS, Chaos
from lab.scenarios.chaos.script import Danger, script

pytestmark = [
    pytest.mark.proofs,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(INSIDE not in os.environ, reason="only the embedded lab adds a node to itself"),
]
SEED = int(os.environ.get("STREAMAPP_CHAOS_SEED", "2"))
SECONDS = 150.0


def test_all_dangers_at_once_lose_nothing_and_leave_nothing_behind(
    session: Session,
    operator: None,  # noqa: ARG001 (it must run)
    tmp_path: Path,
) -> None:
    print(f"STREAMAPP_CHAOS_SEED={SEED} plays this script again")  # noqa: T201 (for whoever reads a failure)
    outcome = Chaos(session, SEED, SECONDS).run()
    (tmp_path / "outcome.txt").write_text("\n".join(f"{one.act}: {one.came_to} {one.words}" for one in outcome.played))
    assert outcome.faults == ()
    assert set(outcome.counts) == set(CHAOS_KINDS)
    assert [one.act for one in outcome.played] == list(script(SEED, SECONDS, CHAOS_KINDS))
    assert outcome.of(Danger.REPLICAS, CameTo.DONE) >= len(CHAOS_KINDS)
