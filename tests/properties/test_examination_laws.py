"""The laws of examinations and task tables, for applications in trouble of every kind."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamapp.core.doctor.diagnoses import Diagnosis, FindingKind
from streamapp.core.doctor.examine import CHECKS, examine
from streamapp.core.doctor.subject import Subject, TemplateFacts
from streamapp.core.evidence import learner_source
from streamapp.core.evidence.coverage import is_caught_up
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.facts.agent_reports import AgentSilent
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.lag import Measured
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.status.task_table import Activity, TaskTable, task_table
from tests.agent_strategies import agent_policies, in_any_case
from tests.strategies import policies, snapshots

TEMPLATES = st.builds(
    TemplateFacts,
    grace_seconds=st.none() | st.integers(0, 300),
    has_readiness_probe=st.booleans(),
    mount_path=st.just("/state"),
    state_directory=st.just("/state"),
)
PATIENTS = st.builds(Subject, snapshot=snapshots(), policy=policies(), template=st.none() | TEMPLATES) | st.builds(
    Subject, snapshot=in_any_case(), policy=agent_policies(), template=TEMPLATES
)
OF_THE_GROUP = frozenset({Diagnosis.NoCopies, Diagnosis.IdentityUnstable, Diagnosis.BrokersUnreachable})
BY_AGENTS = frozenset({Diagnosis.HeartbeatSlow, Diagnosis.CloseWithoutLeave, Diagnosis.StateDirElsewhere})


@given(PATIENTS)
def test_each_check_speaks_of_its_own_and_says_one_thing_only(subject: Subject) -> None:
    for diagnosis, check in CHECKS:
        found = check(subject)
        assert {one.diagnosis for one in found or ()} <= {diagnosis}
    examination = examine(subject)
    told = {one.diagnosis for one in examination.findings}
    assert told.isdisjoint(examination.fine)
    assert len(set(examination.fine)) == len(examination.fine)


@given(PATIENTS)
def test_what_was_not_read_is_never_in_order(subject: Subject) -> None:
    latest = subject.snapshot.latest
    fine = set(examine(subject).fine)
    if latest is None or not isinstance(latest.group, GroupDescription):
        # Whoever was told that the protocol is another one has reached the brokers; learners on demand are the agents'.
        told_otherwise = {Diagnosis.BrokersUnreachable} if latest is not None else set()
        if learner_source.source_in_force(Evidence(subject.snapshot, subject.policy)).is_on_demand:
            told_otherwise.add(Diagnosis.NoCopies)
        assert fine.isdisjoint(OF_THE_GROUP - told_otherwise)
    if not isinstance(subject.snapshot.task_set, TaskSet):
        assert fine.isdisjoint({Diagnosis.TopologyUnknown, Diagnosis.EndOffsetsUnread})


@given(PATIENTS)
def test_what_an_agent_did_not_tell_is_never_in_order(subject: Subject) -> None:
    snapshot = subject.snapshot
    running = [pod.ordinal for pod in snapshot.workload.pods if pod.is_running]
    silent = snapshot.agents is None or any(
        isinstance(snapshot.agents.latest(ordinal), AgentSilent) for ordinal in running
    )
    if not subject.policy.agent or silent or not running:
        assert BY_AGENTS.isdisjoint(examine(subject).fine)


@given(PATIENTS)
def test_what_was_not_checked_says_why(subject: Subject) -> None:
    assert [one for one in examine(subject).findings if one.kind is not FindingKind.FOUND and not one.detail] == []


@given(snapshots() | in_any_case(), policies() | agent_policies())
def test_a_task_table_has_every_task_once_and_covers_only_with_copies_that_are_caught_up(
    snapshot: Snapshot, policy: ScalingPolicy
) -> None:
    table: Any = task_table(snapshot, policy)
    if not isinstance(table, TaskTable):
        assert table.reason.note
        return
    assert isinstance(snapshot.task_set, TaskSet)
    assert [row.task for row in table.rows] == [task.id for task in snapshot.task_set.tasks]
    for row in table.rows:
        good = {copy.ordinal for copy in row.copies if copy.is_caught_up}
        assert set(row.covered_on or ()) == (good - {table.highest} if row.covered_on is not None else set())
        measured = [copy for copy in row.copies if copy.is_caught_up and copy.lag is not None]
        assert all(is_caught_up(Measured(copy.lag or 0), table.limit) for copy in measured)
        assert (row.owner is None) == (row.activity is Activity.UNASSIGNED)
