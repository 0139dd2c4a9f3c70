"""What is known of the product without each safeguard of its shell; `shell_safeguards.py` finds them.

Each entry says what the safeguard is for, and what fails without it: a story of the sweep, or one test of the project.
Where nothing fails without it alone, the entry names the safeguard behind it; without both the test fails.
`test_shell_mutants.py` takes each one away and plays the story or runs the test.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tests.prove.play import play
from tests.prove.shell_safeguards import Safeguard, every_safeguard, without
from tests.prove.shell_tests import Outcome, outcome_of
from tests.prove.story import Story

RECONCILE = "tests/controller/reconcile"
LEADER = "tests/controller/leader"
AGENTS = "tests/controller/agents/test_agents.py"
CALLS = f"{RECONCILE}/test_calls_of_a_plan.py"
RAISES = f"{RECONCILE}/raises"
BESIDE = f"{RAISES}/test_raise_beside_requests.py"
LOOK = f"{RECONCILE}/test_last_look.py"
WATCHED = f"{RECONCILE}/watches/test_watched_passes.py"
OTHERS = f"{RECONCILE}/watches/test_watches_and_others.py"
ELECTION = f"{LEADER}/test_election.py"
THREAD = f"{LEADER}/test_thread_loop.py"
FENCES = "tests/kube/objects/test_fences.py"

PLAN_ENDS = f"{CALLS}::test_a_plan_ends_between_two_calls_where_a_raise_waits"
BROKERS_HANG = f"{BESIDE}::test_a_raise_is_made_while_brokers_hang_and_they_are_asked_nothing_else_meanwhile"
READS_PODS = f"{CALLS}::test_a_raise_that_is_received_while_a_removal_reads_the_pods_again_keeps_it_from_being_sent"
RAISE_IN_TURN = f"{OTHERS}::test_a_raise_that_waits_for_its_turn_is_not_sent_once_something_else_is_desired[pause-60]"
CONTAINER = f"{LOOK}::test_nothing_is_done_where_a_container_was_restarted"
PAUSED = f"{LOOK}::test_nothing_is_done_where_the_user_has_paused_it"
TOOK_LONG = f"{LOOK}::test_nothing_is_done_where_the_last_look_took_too_long"
LEASE_LOST = f"{LOOK}::test_nothing_is_done_where_another_replica_has_the_lease"
IS_GONE = f"{LOOK}::test_a_pod_or_a_claim_that_the_facts_do_not_show_is_told_to_be_gone"
AGENTS_SAY = f"{AGENTS}::test_a_pod_is_taken_only_if_the_agents_still_say_the_same"
WAKES_UP = f"{ELECTION}::test_a_leader_that_wakes_up_late_knows_that_before_it_has_asked_anybody"
ASKS = f"{ELECTION}::test_asking_the_api_server_shows_a_term_that_is_over_before_the_clock_does"
OVER_THERE = f"{THREAD}::test_a_term_that_is_over_there_is_over_here"
REPLACED = f"{LEADER}/test_record_fence.py::test_a_process_that_a_later_one_has_replaced_takes_no_pod_and_ends"
FOREIGN = f"{FENCES}::test_an_object_of_another_owner_is_not_touched"

MESSAGE = "a clear message"
COURTESY = "courtesy to brokers"
AVAILABILITY = "availability"
OWNERSHIP = "objects of other owners"
SERVICES = frozenset({MESSAGE, COURTESY, AVAILABILITY, OWNERSHIP})
"""What a safeguard can be for that is no guarantee of the README."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of the product without one safeguard."""

    keeps: int | str
    """The number of the guarantee that rests on it, or one of `SERVICES`."""
    story: str = ""
    """The story of the sweep that fails; it is the first and only one that is played."""
    test: str = ""
    """The test that fails, by its node ID."""
    behind: tuple[str, ...] = ()
    """Without this safeguard alone nothing fails; without these as well the test does."""

    @property
    def status(self) -> str:
        """One word for the table."""
        if self.behind:
            return "explained"
        return "swept" if self.story else "tested"


LEDGER: Mapping[str, Entry] = {
    "apply.Applier.apply: ask is_received 1": Entry(3, test=PLAN_ENDS),
    "apply.Applier.apply: raise RaisePendingError 1": Entry(3, test=PLAN_ENDS),
    "apply.Applier._ask: raise ConflictError 1": Entry(COURTESY, test=BROKERS_HANG),
    "apply.Applier._ask: raise RaisePendingError 1": Entry(3, test=BROKERS_HANG),
    "apply.Applier.raise_replicas: ask _still_desired 1": Entry(3, test=RAISE_IN_TURN),
    "apply.Applier._observed: call check 1": Entry(
        2, test=f"{LEADER}/test_leadership.py::test_no_step_is_begun_by_a_process_that_does_not_lead[Evict]"
    ),
    "apply.Applier.leave_group_as_it_was: call check 1": Entry(
        2, test=f"{RAISES}/test_raised_standbys.py::test_a_process_that_does_not_lead_any_more_puts_nothing_back"
    ),
    "apply.Applier._set_standbys: call confirm 1": Entry(
        2,
        test=f"{RAISES}/test_raised_standbys.py"
        "::test_the_brokers_are_asked_for_standbys_only_under_a_lease_that_the_api_server_confirms[another's]",
    ),
    "apply.Applier._grant: call _check_again 1": Entry(1, test=f"{CONTAINER}[removal]"),
    "apply.Applier._grant: ask _freshness 1": Entry(2, story="down-4-3 seed=1 kafka:7:api-slow:4"),
    "apply.Applier._open_budget: call _check_again 1": Entry(1, test=f"{CONTAINER}[opening]"),
    "apply.Applier._open_budget: ask _freshness 1": Entry(2, test=f"{TOOK_LONG}[opening]"),
    "apply._claim: raise ConflictError 1": Entry(MESSAGE, test=IS_GONE),
    "apply.Applier._restart: raise ConflictError 1": Entry(MESSAGE, test=IS_GONE),
    "apply.Applier._restart: call _check_again 1": Entry(1, test=f"{CONTAINER}[restart]"),
    "apply.Applier._restart: ask _freshness 1": Entry(2, test=f"{TOOK_LONG}[restart]"),
    "apply.Applier._check_again: call _check_agents 1": Entry(
        2, test=f"{AGENTS_SAY}[spoil_tasks-tasks of ordinal 1 have changed since]"
    ),
    "apply.Applier._check_again: raise ConflictError 1": Entry(1, test=f"{PAUSED}[removal]"),
    "apply.Applier._check_again: raise ConflictError 2": Entry(
        3,
        test=f"{LOOK}::test_no_pod_goes_that_is_desired_again",
        behind=("apply.Applier._check_again: raise ConflictError 1",),
    ),
    "apply.Applier._check_again: raise ConflictError 3": Entry(
        2, test=f"{LOOK}::test_nothing_is_done_where_a_claim_is_deleted_since[removal]"
    ),
    "apply.Applier._check_again: raise ConflictError 4": Entry(1, test=f"{CONTAINER}[removal]"),
    "apply.Applier._check_again: call confirm 1": Entry(2, test=f"{LEASE_LOST}[restart]"),
    "apply.Applier._check_agents: raise RaisePendingError 1": Entry(
        3, test=f"{BESIDE}::test_a_raise_is_made_while_agents_hang_that_a_removal_asks_again"
    ),
    "apply.Applier._check_agents: raise ConflictError 1": Entry(
        2, test=f"{AGENTS_SAY}[spoil_tasks-tasks of ordinal 1 have changed since]"
    ),
    "apply.Applier._freshness: raise ConflictError 1": Entry(3, test=f"{READS_PODS}[the pod is desired again]"),
    "apply.Applier._freshness: raise ConflictError 2": Entry(
        2, test=f"{LOOK}::test_nothing_is_sent_where_the_group_has_changed_since_it_was_judged[removal-rebalance]"
    ),
    "apply.Applier._freshness: raise ConflictError 3": Entry(2, story="down-4-3 seed=1 kafka:7:api-slow:4"),
    "apply._still_desired: raise ConflictError 1": Entry(3, test=RAISE_IN_TURN),
    "owned.OwnedObjects.open_budget: fence 1": Entry(
        2,
        test="tests/controller/test_disruptions.py::test_an_opening_is_not_sent_when_the_world_has_moved_on"
        "[another process wrote the budget]",
    ),
    "reconciler.Reconciler._fence: ask fence_hold_record 1": Entry(
        2,
        test="tests/controller/test_rivals.py"
        "::test_a_new_process_fences_a_hold_at_once_although_a_namespace_gives_no_answer",
    ),
    "reconciler.Reconciler._pass: ask _must_be_live 1": Entry(
        2, test=f"{WATCHED}::test_a_silent_watch_is_not_believed"
    ),
    "reconciler.Reconciler._pass: ask fence_hold_record 1": Entry(
        2,
        test=f"{RECONCILE}/test_reconciler.py"
        "::test_a_new_process_writes_its_own_epoch_into_the_record_before_anything_else",
    ),
    "reconciler.Reconciler._gather: raise RaisePendingError 1": Entry(
        3, test=f"{RAISES}/test_raise.py::test_a_raise_that_is_received_while_a_read_hangs_ends_the_pass"
    ),
    "reconciler.Reconciler._play: raise RaisePendingError 1": Entry(
        3, test="tests/controller/apps/test_long_plays.py::test_a_raise_does_not_wait_for_a_long_decision"
    ),
    "reconciler.Reconciler._rest: ask _is_all_done 1": Entry(
        2, test=f"{WATCHED}::test_the_first_step_after_a_rest_is_made_on_live_reads"
    ),
    "record_fence.fence: call give_way 1": Entry(2, test=REPLACED),
    "leadership.Alone.give_way: raise NotLeadingError 1": Entry(2, test=REPLACED),
    "election.Elector.check: ask leads 1": Entry(2, test=WAKES_UP),
    "election.Elector.check: call _lose 1": Entry(2, test=WAKES_UP),
    "election.Elector.confirm: call check 1": Entry(
        2, test=f"{ELECTION}::test_a_lease_that_still_names_it_confirms_no_term_that_is_over_by_the_clock"
    ),
    "election.Elector.confirm: call _verify_own 1": Entry(2, test=ASKS),
    "election.Elector.give_way: call confirm 1": Entry(
        2, test=f"{ELECTION}::test_a_later_number_on_record_ends_a_leader_only_if_the_lease_is_another_s"
    ),
    "election.Elector.look: ask leads 1": Entry(
        2, test=f"{ELECTION}::test_the_first_replica_leads_at_once_and_the_next_stands_by_and_sees_it"
    ),
    "election.Elector.keep: call check 1": Entry(
        AVAILABILITY, test=f"{ELECTION}::test_a_term_that_is_over_is_not_renewed_any_more"
    ),
    "election.Elector.renew: call _verify_own 1": Entry(
        AVAILABILITY,
        test=f"{ELECTION}::test_a_lease_that_another_takes_while_an_answer_is_lost_ends_the_leader_at_its_next_renewal",
        behind=("election.Elector.renew: call _verify_own 2",),
    ),
    "election.Elector.renew: call _verify_own 2": Entry(
        AVAILABILITY, test=f"{ELECTION}::test_a_lease_that_another_takes_by_force_ends_the_leader"
    ),
    "election.Elector._write_own: raise ConflictError 1": Entry(
        MESSAGE, test=f"{ELECTION}::test_what_was_never_held_is_not_written"
    ),
    "election.Elector._verify_own: call _lose 1": Entry(2, test=ASKS),
    "election.Elector._lose: raise NotLeadingError 1": Entry(2, test=ASKS),
    "thread_loop.RemoteLeadership.leads: ask leads 1": Entry(2, test=OVER_THERE),
    "thread_loop.RemoteLeadership.check: call check 1": Entry(2, test=OVER_THERE),
    "client.KubeClient.watch: fence 1": Entry(
        AVAILABILITY,
        test="tests/kube/client/test_watch.py::test_what_changes_between_list_and_watch_is_not_missed",
    ),
    "client.KubeClient.delete: fence 1": Entry(
        2, test=f"{FENCES}::test_a_pod_that_has_changed_since_it_was_read_is_not_deleted"
    ),
    "client.KubeClient.end_pod: fence 1": Entry(
        AVAILABILITY,
        test=f"{FENCES}::test_a_pod_that_was_made_anew_is_not_ended_in_place_of_the_one_that_was_read",
    ),
    "client.KubeClient._checked: may_write 1": Entry(
        2,
        test=f"{LEADER}/test_leadership.py"
        "::test_the_client_asks_when_it_is_connected_and_sends_no_write_that_is_not_allowed",
    ),
    "claims.record_process_id: raise ConflictError 1": Entry(
        5, test=f"{FENCES}::test_a_process_id_on_record_is_not_replaced"
    ),
    "claims._fence: fence 1": Entry(
        5, test=f"{FENCES}::test_a_process_id_that_was_recorded_since_the_claim_was_read_is_not_replaced"
    ),
    "events.publish: fence 1": Entry(
        8, test=f"{FENCES}::test_an_event_is_about_the_streamapp_that_was_read_and_no_later_one_of_its_name"
    ),
    "leases.write: fence 1": Entry(
        2, test=f"{FENCES}::test_a_lease_is_not_written_over_what_another_replica_wrote_since"
    ),
    "leases.write: raise ConflictError 1": Entry(
        AVAILABILITY, test=f"{FENCES}::test_a_lease_that_is_gone_is_read_again_and_ends_nothing"
    ),
    "owned_objects.apply_service: call _refuse_foreign 1": Entry(OWNERSHIP, test=f"{FOREIGN}[Service]"),
    "owned_objects.apply_budget: call _refuse_foreign 1": Entry(OWNERSHIP, test=f"{FOREIGN}[budget]"),
    "owned_objects._refuse_foreign: raise InvalidError 1": Entry(OWNERSHIP, test=f"{FOREIGN}[budget]"),
    "statefulsets.grant: fence 1": Entry(2, story="down-4-3 seed=1 write:18:freeze:8"),
    "statefulsets._remove_record: fence 1": Entry(
        2, test="tests/kube/objects/test_record_ends.py::test_a_hold_record_that_was_written_anew_meanwhile_stays"
    ),
    "statefulsets.raise_to: fence 1": Entry(
        2, test=f"{FENCES}::test_a_raise_is_not_written_over_a_half_made_statefulset_that_has_changed_since"
    ),
    "statefulsets.keep_claims: fence 1": Entry(
        4, test=f"{FENCES}::test_a_retention_policy_is_not_written_over_a_statefulset_that_has_changed_since"
    ),
    "statefulsets._fenced: fence 1": Entry(
        2, test=f"{FENCES}::test_a_template_is_not_written_over_a_statefulset_that_has_changed_since"
    ),
}
"""Every safeguard, by its name."""


def figures() -> str:
    """How many there are of each kind, in a sentence of `docs/proofs.md`."""
    counts = Counter(entry.status for entry in LEDGER.values())
    guarantees = sum(isinstance(entry.keeps, int) for entry in LEDGER.values())
    return (
        f"Of {len(LEDGER)} safeguards {guarantees} keep a guarantee and {len(LEDGER) - guarantees} a service.\n"
        f"{counts['swept']} are caught by one story of the sweep, {counts['tested']} by a test, "
        f"and {counts['explained']} have another one behind them."
    )


def safeguard(name: str) -> Safeguard:
    """Find a safeguard by its name."""
    return next(one for one in every_safeguard() if str(one) == name)


def fails_without(entry: Entry, *names: str) -> bool:
    """Whether the story, whose scene the sound product sets up, or the test fails without these safeguards.

    Raises:
        ValueError: The test did not run.
    """
    dropped = tuple(map(safeguard, names))
    if entry.story:
        story = Story.parse(entry.story)
        play(Story(story.scene, story.seed))
        with without(*dropped):
            return bool(play(story).wrongs)
    outcome = outcome_of(entry.test, dropped)
    if outcome is Outcome.DID_NOT_RUN:
        raise ValueError(f"{entry.test} did not run: is there such a test?")
    return outcome is Outcome.FAILED
