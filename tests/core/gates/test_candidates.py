"""Which pods would go next, and that pods which hold nothing go together."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.actions.decision import GrantReplicas
from streamapp.core.decide import decide
from streamapp.core.facts.group import Applied, GroupDescription, GroupState, Member
from streamapp.core.facts.snapshot import Snapshot
from tests.builders import (
    POLICY,
    a_pod,
    a_reading,
    a_record,
    a_snapshot,
    an_unreadable,
    not_running,
    pods,
    steps,
    told,
    volumes,
    without_subscriptions,
)
from tests.support import example

BUSY = example.members(3)
NEVER = not_running(ever_ran=False)


def six(
    *, desired: int = 3, idle: tuple[int, ...] = (), never_ran: tuple[int, ...] = (), **changes: object
) -> Snapshot:
    """Six pods, of which 0 to 2 hold everything; the others are in the group without tasks, or never ran."""
    members: tuple[Member, ...] = (*BUSY, *(example.member(number) for number in idle))
    replaced = {f"p{number}": a_pod(number, container=NEVER, ips=(), ready=False) for number in never_ran}
    fresh = tuple(
        example.volume(number, **({"process_id": None} if number in never_ran else {})) for number in range(6)
    )
    return a_snapshot(
        pods=6,
        desired=desired,
        record=a_record(from_replicas=6, granted=6, target=desired),
        workload={"pods": pods(6, **replaced), "volumes": fresh},
        **{"members": members, **changes},  # type: ignore[arg-type]  # fields by name
    )


def granted(snapshot: Snapshot) -> tuple[tuple[str, str], int | None]:
    """The verdict, and how many replicas the plan grants."""
    decision = decide(snapshot, POLICY)
    grants = [step.to_replicas for step in decision.plan if isinstance(step, GrantReplicas)]
    return told(decision), grants[0] if grants else None


def test_pods_with_tasks_go_one_at_a_time() -> None:
    assert granted(a_snapshot(desired=1)) == (("Step", "Covered"), 2)


def test_the_contiguous_top_run_of_pods_without_tasks_goes_in_one_step() -> None:
    assert granted(six(idle=(3, 4, 5))) == (("Step", "OwnsNothing"), 3)


def test_the_run_ends_where_the_wish_is() -> None:
    assert granted(six(desired=5, idle=(3, 4, 5))) == (("Step", "OwnsNothing"), 5)


def test_the_run_ends_at_the_first_pod_with_a_task() -> None:
    standby = example.member(4, standby=(0,))
    snapshot = six(members=(*BUSY, example.member(3), standby, example.member(5)))
    assert granted(snapshot) == (("Step", "OwnsNothing"), 5)


def test_a_pod_whose_container_ran_but_that_is_not_in_the_group_is_not_idle() -> None:
    # its volume may hold the warmest state there is; it goes alone, and only if everything is covered without it
    assert granted(six(idle=(3, 4))) == (("Step", "Covered"), 5)


def test_pods_that_never_ran_go_together_whatever_the_state_of_the_group() -> None:
    hidden = without_subscriptions(BUSY)
    unstable = a_reading(hidden, state=GroupState.PREPARING_REBALANCE, rebalance=None)
    assert granted(six(never_ran=(3, 4, 5), readings=(unstable,))) == (("Step", "NeverRan"), 3)


@pytest.mark.parametrize("state", [GroupState.EMPTY, GroupState.DEAD])
def test_pods_that_never_ran_go_even_where_nobody_is_in_the_group(state: GroupState) -> None:
    assert granted(six(never_ran=(3, 4, 5), readings=(a_reading((), state=state),))) == (("Step", "NeverRan"), 3)


def test_pods_that_never_ran_stay_while_the_brokers_do_not_answer() -> None:
    assert granted(six(never_ran=(3, 4, 5), readings=(an_unreadable(),))) == (("Hold", "BrokersUnreachable"), None)


def test_pods_that_never_ran_stay_while_somebody_in_the_group_could_be_theirs() -> None:
    stranger = replace(example.member(7), client_host="10.9.9.9")
    unstable = a_reading(without_subscriptions((*BUSY, stranger)), state=GroupState.PREPARING_REBALANCE, rebalance=None)
    assert granted(six(never_ran=(3, 4, 5), readings=(unstable,))) == (("Hold", "GroupRebalancing"), None)


def test_a_young_pod_on_an_old_volume_has_a_past() -> None:
    # drained from a node and not started again yet: its volume may hold what the others restore at this moment
    waiting = a_pod(5, container=NEVER, ips=(), ready=False)
    others = a_reading(without_subscriptions(BUSY), state=GroupState.PREPARING_REBALANCE, rebalance=None)
    snapshot = six(readings=(others,))
    unstable = replace(snapshot, workload=replace(snapshot.workload, pods=pods(6, p5=waiting), volumes=volumes(6)))
    assert granted(unstable) == (("Hold", "GroupRebalancing"), None)


@pytest.mark.parametrize(("seconds_older", "verdict"), [(0, "NeverRan"), (1, "NeverRan"), (2, "GroupRebalancing")])
def test_a_volume_without_a_process_id_that_is_older_than_its_pod_has_a_past(seconds_older: int, verdict: str) -> None:
    # an earlier pod ran on it, and no reading showed a stable group while it did
    unstable = a_reading(without_subscriptions(BUSY), state=GroupState.PREPARING_REBALANCE, rebalance=None)
    snapshot = six(never_ran=(3, 4, 5), readings=(unstable,))
    old = example.volume(5, process_id=None, created_at=example.CREATED_AT - timedelta(seconds=seconds_older))
    others = (one for one in snapshot.workload.volumes if one.ordinal != 5)
    changed = replace(snapshot, workload=replace(snapshot.workload, volumes=(*others, old)))
    assert granted(changed)[0][1] == verdict


@pytest.mark.parametrize("who", ["pod", "volume"])
def test_a_date_that_is_not_known_counts_as_a_past(who: str) -> None:
    unstable = a_reading(without_subscriptions(BUSY), state=GroupState.PREPARING_REBALANCE, rebalance=None)
    workload = six(never_ran=(3, 4, 5), readings=(unstable,)).workload
    if who == "pod":
        workload = replace(workload, pods=tuple(replace(one, created_at=None) for one in workload.pods))
    else:
        workload = replace(workload, volumes=tuple(replace(one, created_at=None) for one in workload.volumes))
    changed = replace(six(never_ran=(3, 4, 5), readings=(unstable,)), workload=workload)
    assert granted(changed) == (("Hold", "GroupRebalancing"), None)


@pytest.mark.guarantee(2)
@pytest.mark.guarantee(5)
def test_a_young_pod_whose_volume_is_not_in_view_may_have_a_past() -> None:
    waiting = a_pod(5, container=NEVER, ips=(), ready=False)
    snapshot = six(readings=(a_reading((), state=GroupState.EMPTY),))
    unseen = replace(snapshot, workload=replace(snapshot.workload, pods=pods(6, p5=waiting), volumes=volumes(5)))
    assert granted(unseen) == (("Hold", "GroupEmpty"), None)
    stateless = replace(unseen, app=replace(unseen.app, keeps_state=False))
    assert granted(stateless) == (("Step", "NeverRan"), 5)


def test_a_step_that_takes_pods_which_never_ran_leaves_nothing_to_be_watched() -> None:
    decision = decide(six(never_ran=(3, 4, 5)), POLICY)
    grant = next(step for step in decision.plan if isinstance(step, GrantReplicas))
    assert (steps(decision), grant.record) == (("GrantReplicas",), None)


def test_pods_without_tasks_may_go_while_a_task_elsewhere_is_not_covered() -> None:
    lagging = (*example.members(3, lag=500_000), *(example.member(number) for number in (3, 4, 5)))
    restoring = replace(example.member(0, active=(0, 1), standby=(4, 5), running=False))
    members = (restoring, *lagging[1:])
    assert granted(six(members=members)) == (("Step", "OwnsNothing"), 3)


def test_but_not_with_state_of_that_task_on_their_disk() -> None:
    # the next rebalance would move the task back to them
    dormant = example.member(5)
    assert dormant.subscription is not None
    warm = replace(dormant, subscription=replace(dormant.subscription, offsets={example.task(0): Applied(example.END)}))
    restoring = example.member(0, active=(0, 1), standby=(4, 5), running=False)
    lagging = example.members(3, lag=500_000)
    members = (restoring, *lagging[1:], example.member(3), example.member(4), warm)
    assert granted(six(members=members)) == (("Hold", "LearnersCatchingUp"), None)


def test_an_idle_run_that_took_up_tasks_between_the_readings_stays() -> None:
    busy_again = (*BUSY, example.member(3), example.member(4), example.member(5, standby=(0,)))
    idle = (*BUSY, *(example.member(number) for number in (3, 4, 5)))
    readings = (a_reading(idle, at=1), a_reading(busy_again, at=15))
    assert granted(six(readings=readings)) == (("Hold", "GroupChanged"), None)


def test_in_an_unstable_group_nobody_is_known_to_hold_nothing() -> None:
    unseen = tuple(replace(member, assignment=None) for member in without_subscriptions(BUSY))
    group = GroupDescription(GroupState.COMPLETING_REBALANCE, unseen)
    snapshot = a_snapshot(desired=1, readings=(replace(a_reading(BUSY), group=group),))
    assert granted(snapshot) == (("Hold", "GroupRebalancing"), None)
