"""Every list of gates, in the order in which they are asked: the first gate that refuses names the reason.

`reasons` says of each reason what is known of it; the gate that gives it is 5 to 15 lines in the file that its import
here names. Who asks a list stands in its own words below.
"""

from collections.abc import Mapping

from streamapp.core.gates.agent_gates import (
    agents_agree,
    announcement_is_followed,
    announcement_is_heard,
)
from streamapp.core.gates.case import Gate
from streamapp.core.gates.coverage_gates import (
    brokers_choose_caught_up_copies,
    end_offsets_were_read,
    every_stateful_task_has_two_places,
    every_stateful_task_is_covered,
    positions_are_known,
    tasks_move_to_caught_up_copies,
    the_source_that_is_demanded_is_in_force,
    topology_is_known,
)
from streamapp.core.gates.drain_gates import (
    learners_have_room,
    pods_are_drained,
    raised_standbys_have_room,
    restore_place_is_free,
    tasks_fit_into_memory,
)
from streamapp.core.gates.safety_gates import (
    brokers_answered,
    every_task_is_active_once,
    every_task_ran_at_the_look,
    every_task_runs,
    every_task_says_it_runs,
    facts_are_fresh,
    facts_are_fresh_or_at_rest,
    group_is_stable,
    identity_holds,
    no_earlier_step_is_open,
    no_follow_up_is_scheduled,
    no_member_is_foreign,
    no_process_id_is_duplicated,
    no_rollout_is_half_done,
    no_volume_goes_with_its_pod,
    only_pods_without_tasks_go_together,
    ordinals_begin_at_zero,
    retention_is_in_force,
    statefulset_is_observed,
    the_other_pods_are_ready,
)
from streamapp.core.gates.spread_gates import (
    enough_pods_stay,
    every_task_keeps_its_copies,
    every_task_keeps_its_zones,
)

REMOVAL_GATES: tuple[Gate, ...] = (
    ordinals_begin_at_zero,
    no_earlier_step_is_open,
    facts_are_fresh,
    brokers_answered,
    group_is_stable,
    no_follow_up_is_scheduled,
    every_task_is_active_once,
    agents_agree,
    no_member_is_foreign,
    no_process_id_is_duplicated,
    identity_holds,
    statefulset_is_observed,
    retention_is_in_force,
    no_rollout_is_half_done,
    only_pods_without_tasks_go_together,
)
"""For every removal and every restart. All are asked of both readings, but for the age of the earlier one."""


DRAINED_REMOVAL_GATES: tuple[Gate, ...] = tuple(gate for gate in REMOVAL_GATES if gate is not no_follow_up_is_scheduled)
"""The same where pods are drained first: follow-ups go on while learners learn, and are asked about with coverage."""


NEVER_RAN_GATES: tuple[Gate, ...] = (
    ordinals_begin_at_zero,
    no_earlier_step_is_open,
    facts_are_fresh,
    no_process_id_is_duplicated,
    identity_holds,
    statefulset_is_observed,
    retention_is_in_force,
    only_pods_without_tasks_go_together,
)
"""For pods whose container never ran: the state of a group that they were never part of does not matter.

Also if all pods stop together: nothing of the group is left that their going could disturb. That the brokers answered
is asked by `no_process_id_is_duplicated`, which gives the same refusal.
"""


REPLACEMENT_GATES: tuple[Gate, ...] = (
    ordinals_begin_at_zero,
    no_earlier_step_is_open,
    facts_are_fresh,
    no_volume_goes_with_its_pod,
    statefulset_is_observed,
)
"""For a pod that does not run and has nobody in the group: replacing it takes nothing from anyone.

Who is in the group is asked before, by `takes_nothing_away`, which no unread group passes.
"""


READINESS_GATES: tuple[Gate, ...] = (
    ordinals_begin_at_zero,
    no_earlier_step_is_open,
    facts_are_fresh,
    no_volume_goes_with_its_pod,
    statefulset_is_observed,
    retention_is_in_force,
    the_other_pods_are_ready,
)
"""By a user's word alone, where the group's protocol shows nothing of its tasks: one pod at a time.

So it is, too, where pods of two versions let the group rebalance without end, and their restart alone ends that.
"""


COVERAGE_GATES: tuple[Gate, ...] = (
    topology_is_known,
    enough_pods_stay,
    the_source_that_is_demanded_is_in_force,
    tasks_move_to_caught_up_copies,
    raised_standbys_have_room,
    positions_are_known,
    end_offsets_were_read,
    every_stateful_task_is_covered,
    every_task_keeps_its_copies,
    every_task_keeps_its_zones,
    tasks_fit_into_memory,
    brokers_choose_caught_up_copies,
)
"""For removals and restarts without draining; a user can override them."""

TWO_PLACES_GATES: tuple[Gate, ...] = (
    topology_is_known,
    tasks_move_to_caught_up_copies,
    positions_are_known,
    end_offsets_were_read,
    every_stateful_task_has_two_places,
)
"""For an eviction of any one pod, whichever it is."""

LEARNER_GATES: tuple[Gate, ...] = (
    topology_is_known,
    enough_pods_stay,
    tasks_move_to_caught_up_copies,
    learners_have_room,
    tasks_fit_into_memory,
    restore_place_is_free,
    announcement_is_heard,
    announcement_is_followed,
    pods_are_drained,
    every_stateful_task_is_covered,
    every_task_keeps_its_copies,
    every_task_keeps_its_zones,
    no_follow_up_is_scheduled,
)
"""In place of the gates of coverage, where learners come on demand; a user's word overrides them likewise."""

RESTLESS_GATES: tuple[Gate, ...] = (
    group_is_stable,
    no_member_is_foreign,
    no_process_id_is_duplicated,
    identity_holds,
)
"""Before a user's word alone restarts pods of a group that does not come to rest: a look shows who its members are."""

CONVERGENCE_GATES: tuple[Gate, ...] = (
    group_is_stable,
    no_follow_up_is_scheduled,
    every_task_is_active_once,
    every_task_says_it_runs,
)
"""What condition `Converged` asks of the group; it only reports.

An unread group is refused by `group_is_stable`, an unknown topology by `every_task_says_it_runs`, as their own gates
would refuse them.
"""

CONVERGED_GATES: tuple[Gate, ...] = (no_member_is_foreign, facts_are_fresh_or_at_rest, every_task_ran_at_the_look)
"""What is asked last before `Converged` is True, so that neither a stranger nor old facts hide a better reason.

An unread group and an unknown topology are refused before. A member without a pod can be of one that has just gone:
nothing shows then that its tasks run, and a rebalance is due as it leaves."""

STEP_END_GATES: tuple[Gate, ...] = (group_is_stable, every_task_is_active_once)
"""For the end of a step, when its pods and their members are gone."""

STEP_END_BY_TASKS_GATES: tuple[Gate, ...] = (
    *STEP_END_GATES,
    topology_is_known,
    every_task_runs,
    every_task_ran_at_the_look,
)
"""The same where it is known which tasks there are, or the step rested on that."""

_CHAINS = (
    REMOVAL_GATES,
    REPLACEMENT_GATES,
    READINESS_GATES,
    COVERAGE_GATES,
    TWO_PLACES_GATES,
    LEARNER_GATES,
    RESTLESS_GATES,
    CONVERGENCE_GATES,
    CONVERGED_GATES,
    STEP_END_BY_TASKS_GATES,
)
GATES: Mapping[str, Gate] = {gate.__name__: gate for chain in _CHAINS for gate in chain}
"""Every gate by its name, as the rows of `reasons` name it; the chains left out are parts of these."""
