"""Which member runs in which pod."""

from dataclasses import replace

import pytest

from streamapp.core.evidence.membership import (
    PROBE_CLIENT_ID,
    Contradiction,
    MemberPlacement,
    place_members,
    unrecorded,
)
from streamapp.core.facts.group import GroupDescription, GroupState, Member
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.facts.workload import Pod, Volume, Workload
from tests.builders import a_pod, volumes
from tests.support import example

ELSEWHERE = "10.9.9.9"


def attributed(*members: Member, **changes: object) -> MemberPlacement:
    workload: Workload = replace(example.workload(3), **changes)  # type: ignore[arg-type]  # fields by name
    return place_members(GroupDescription(GroupState.STABLE, members), workload)


def placed(*members: Member, **changes: object) -> dict[int, list[str]]:
    found = attributed(*members, **changes)
    return {ordinal: [member.id for member in those] for ordinal, those in found.by_ordinal.items()}


M0, M1, M2 = example.members(3)


def test_address_and_process_id_agree_in_the_ordinary_case() -> None:
    assert placed(M0, M1, M2) == {0: [M0.id], 1: [M1.id], 2: [M2.id]}


def test_a_member_whose_address_no_pod_has_is_placed_by_its_process_id() -> None:
    # behind address translation, or of a pod that has just been replaced
    assert placed(replace(M1, client_host=ELSEWHERE)) == {1: [M1.id]}


def test_a_member_whose_process_id_no_volume_has_is_placed_by_its_address() -> None:
    assert placed(M1, volumes=()) == {1: [M1.id]}


def test_a_member_that_shows_no_subscription_is_placed_by_its_address() -> None:
    assert placed(replace(M1, subscription=None)) == {1: [M1.id]}


def test_an_address_that_two_pods_share_tells_nothing() -> None:
    shared: tuple[Pod, ...] = tuple(a_pod(number, ips=("10.0.0.1",)) for number in range(3))
    on_host = [replace(member, client_host="10.0.0.1") for member in (M0, M1)]
    assert placed(*on_host, pods=shared) == {0: [M0.id], 1: [M1.id]}


def test_a_pod_has_all_its_addresses() -> None:
    dual = a_pod(1, ips=("10.1.0.2", "fd00::2"))
    assert placed(replace(M1, client_host="fd00::2"), pods=(dual,)) == {1: [M1.id]}


def test_a_member_that_nothing_places_is_foreign() -> None:
    stranger = replace(example.member(7), client_host=ELSEWHERE)
    found = attributed(M0, stranger)
    assert (found.foreign, dict(found.by_ordinal)) == ((stranger,), {Ordinal(0): (M0,)})


def test_a_member_that_nothing_places_because_the_group_is_unstable_is_foreign_too() -> None:
    unknown = replace(M0, client_host=ELSEWHERE, subscription=None)
    assert attributed(unknown).foreign == (unknown,)


def test_a_probe_of_ours_is_known_by_its_client_id() -> None:
    ghost = replace(M0, id="ghost", client_id=PROBE_CLIENT_ID, client_host=ELSEWHERE)
    found = attributed(M0, ghost)
    assert (found.probe_members, found.members(Ordinal(0)), found.duplicated) == ((ghost,), (M0,), frozenset())


@pytest.mark.guarantee(7)
def test_an_application_whose_client_id_begins_like_that_of_a_probe_has_no_probes() -> None:
    # Kafka Streams: `<client.id>-StreamThread-<number>-consumer`
    live = replace(M0, client_id=f"{PROBE_CLIENT_ID}-StreamThread-1-consumer")
    found = attributed(live)
    assert (found.probe_members, found.members(Ordinal(0))) == ((), (live,))


@pytest.mark.parametrize(
    ("member", "contradiction"),
    [
        pytest.param(replace(M1, client_host=example.ip(0)), (Ordinal(0), Ordinal(1)), id="another ordinal's process"),
        pytest.param(
            replace(M0, subscription=example.member(8).subscription), (Ordinal(0), None), id="a process of no volume"
        ),
    ],
)
def test_address_and_process_id_that_disagree_are_a_contradiction(
    member: Member, contradiction: tuple[Ordinal, Ordinal | None]
) -> None:
    found = attributed(member)
    assert (found.contradictions, dict(found.by_ordinal)) == ((Contradiction(member, *contradiction),), {})


def test_volumes_that_were_swapped_contradict_on_both_ordinals() -> None:
    swapped = (
        Volume(ordinal=Ordinal(0), process_id=example.process_id(1)),
        Volume(ordinal=Ordinal(1), process_id=example.process_id(0)),
    )
    found = attributed(M0, M1, volumes=swapped)
    assert [clash.by_host for clash in found.contradictions] == [0, 1]


def test_a_restarted_pod_with_a_new_address_is_not_doubled() -> None:
    # its old member is still listed, at an address that no pod has any more
    old = replace(M1, id="old", client_host=ELSEWHERE)
    found = attributed(M1, old)
    assert (found.duplicated, [member.id for member in found.members(Ordinal(1))]) == (frozenset(), ["old", M1.id])


def test_whether_somebody_may_be_of_an_ordinal_includes_everybody_who_cannot_be_placed() -> None:
    stranger = replace(example.member(7), client_host=ELSEWHERE)
    moved = replace(M1, client_host=example.ip(0))
    assert [
        attributed(M0).may_be_of(Ordinal(0)),
        attributed(M0).may_be_of(Ordinal(2)),
        attributed(M0, stranger).may_be_of(Ordinal(2)),
        attributed(moved).may_be_of(Ordinal(1)),
    ] == [True, False, True, True]


@pytest.mark.parametrize(
    ("members", "found"),
    [
        pytest.param((M2,), {2: example.process_id(2)}, id="its member shows one"),
        pytest.param((M2, replace(example.member(8), client_host=example.ip(2))), {2: None}, id="its members show two"),
        pytest.param((replace(M2, subscription=None),), {2: None}, id="its member shows none"),
        pytest.param((M0,), {}, id="it has no member"),
    ],
)
def test_a_process_id_that_is_not_recorded_yet(members: tuple[Member, ...], found: dict[int, ProcessId | None]) -> None:
    fresh = (*volumes(2), Volume(ordinal=Ordinal(2), process_id=None))
    workload = replace(example.workload(3), volumes=fresh)
    assert unrecorded(attributed(*members, volumes=fresh), workload) == found
