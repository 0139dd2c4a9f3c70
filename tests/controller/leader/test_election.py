"""The election: never two that lead, always one again; and what a replica makes of a Lease that misbehaves."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from structlog.typing import EventDict

from streamapp.controller.leader.election import DRIFT, LeaseTiming
from streamapp.controller.leader.leadership import NotLeadingError
from streamapp.kube.client.errors import ConflictError, NotFoundError, RefusedError
from tests.controller.leader.candidates import TIMING, Election
from tests.prove.virtual_time import VirtualLoop, run

QUIET_AFTER = 60.0
PROGRESS = (TIMING.lease + 1) / (1 - DRIFT) + 2 * TIMING.retry
"""Seconds within which somebody leads again where nothing is wrong any more."""
RATES = st.floats(1 - DRIFT, 1 + DRIFT)
KINDS = ["slow", "lose-requests", "lose-answers", "conflict", "freeze", "die", "stop", "touch", "clear", "name"]
EVENTS = st.tuples(st.floats(0, QUIET_AFTER), st.integers(0, 2), st.sampled_from(KINDS), st.floats(0.1, 30))


def play(story: Callable[[Election], Awaitable[None]], seed: int = 0) -> Election:
    """Play it in virtual time."""
    loop = VirtualLoop()

    async def main() -> Election:
        election = Election(loop, seed)
        await story(election)
        return election

    return run(loop, main())


def happen(election: Election, index: int, kind: str, amount: float) -> None:
    """Let one thing go wrong with the candidate of this place, as far as it is still there."""
    one = election.all[index]
    if one.is_over:
        election.add(one.rate)
        election.all[index] = election.all.pop()
        return
    weather = one.weather
    match kind:
        case "slow":
            weather.slowest = amount
            election.loop.call_later(5, setattr, weather, "slowest", 0.02)
        case "lose-requests":
            weather.lost_requests = int(amount)
        case "lose-answers":
            weather.lost_answers = int(amount)
        case "conflict":
            weather.conflicts = int(amount)
        case "freeze":
            one.freeze(amount)
        case "die":
            one.die()
        case "stop":
            one.ending = election.loop.create_task(one.stop())
        case "clear" | "name":
            election.name(one.name if kind == "name" else None)
        case _:
            election.touch()


NAMED_WHILE_A_TRY_IS_OPEN = {
    "rates": (0.973502407916861, 0.9091314909193595, 0.9835533872952722),
    "events": [(1.5, 0, "slow", 13.302712590743784), (0.0, 0, "slow", 4.0079), (5.8998, 0, "name", 29.9)],
    "seed": 0,
}
"""A try to take the Lease is not answered in time, another replica leads, and a person writes the first one's name."""


@pytest.mark.guarantee(2)
@example(**NAMED_WHILE_A_TRY_IS_OPEN)
@given(rates=st.tuples(RATES, RATES, RATES), events=st.lists(EVENTS, max_size=12), seed=st.integers(0, 2**32))
def test_at_no_moment_do_two_replicas_believe_that_they_lead(
    rates: tuple[float, ...], events: list[tuple[float, int, str, float]], seed: int
) -> None:
    async def story(election: Election) -> None:
        for rate in rates:
            election.add(rate)
        for at, index, kind, amount in events:
            election.loop.call_at(at, happen, election, index, kind, amount)
        await asyncio.sleep(QUIET_AFTER + 30)  # whoever was frozen last is awake again
        for one in election.all:
            one.weather.lost_requests = one.weather.lost_answers = one.weather.conflicts = 0
        election.add()
        await election.until(election.leaders, PROGRESS)

    election = play(story, seed)
    assert election.wrongs == []
    terms = [term for _, term in election.led]
    assert terms == sorted(set(terms)), election.led


def test_a_clock_that_errs_by_more_than_is_allowed_for_shows_in_that_law() -> None:
    async def story(election: Election) -> None:
        slow = election.add(0.5)
        await election.until(slow.believes, 5)
        election.add(1.5)
        await asyncio.sleep(3)
        slow.weather.lost_requests = 1000
        await asyncio.sleep(60)

    assert play(story).wrongs != []


def test_the_first_replica_leads_at_once_and_the_next_stands_by_and_sees_it() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        assert await election.until(first.believes, 5) < 0.2
        second = election.add()
        await asyncio.sleep(100)
        assert election.leaders() == [first]
        assert (second.elector.holder, second.elector.transitions, second.elector.blind()) == (first.name, 1, "")

    assert play(story).led == [("pod-1", 1)]


@pytest.mark.parametrize("moment", [0.0, 0.7, 1.4, 2.1])
def test_a_leader_that_dies_is_replaced_when_its_lease_has_stood_still_for_long_enough(moment: float) -> None:
    async def story(election: Election) -> None:
        first, second = election.add(), None
        await election.until(first.believes, 5)
        second = election.add()
        await asyncio.sleep(10 + moment)
        first.die()
        assert 13 < await election.until(second.believes, 20) < 17.5
        assert second.elector.transitions == 2

    assert play(story).wrongs == []


@pytest.mark.guarantee(3)
@pytest.mark.parametrize("seconds", [1.0, 1.6, 2.0, 3.0, 3.8, 4.1, 4.4])
def test_a_lease_is_held_while_the_api_server_takes_seconds_to_answer(seconds: float) -> None:
    async def story(election: Election) -> None:
        first = election.add()
        first.weather.fastest = first.weather.slowest = seconds / 2  # each way
        await election.until(first.believes, 3 * seconds + 5)
        await asyncio.sleep(600)
        assert election.leaders() == [first]

    assert play(story).led == [("pod-1", 1)]


def test_a_leader_that_ends_in_order_is_replaced_at_the_next_look() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        second = election.add()
        await asyncio.sleep(10)
        await first.stop()
        assert election.lease()["holderIdentity"] == ""
        assert await election.until(second.believes, 5) < 2.2

    election = play(story)
    assert (election.wrongs, [term for _, term in election.led]) == ([], [1, 2])


def test_a_renewal_that_was_given_up_and_arrives_after_all_does_not_undo_a_release() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        first.weather.slowest = 1.2  # now and then a request is given up, and arrives
        await asyncio.sleep(7)
        await first.stop()
        await asyncio.sleep(5)

    released = 0
    for seed in range(40):
        history = [change.told["spec"]["holderIdentity"] for change in play(story, seed).store.history]
        assert history == sorted(history, reverse=True), "once it is nobody's, it stays so"
        released += history[-1] == ""
    assert released > 30


def test_a_leader_whose_requests_are_lost_goes_on_until_its_deadline_and_then_ends_once(
    log_lines: list[EventDict],
) -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        await asyncio.sleep(20)
        first.weather.lost_requests = 1000
        assert 8 <= await election.until(lambda: first.is_over, 20) <= 10.1
        assert (first.losses, first.believes()) == (1, False)

    play(story)
    (line,) = [line for line in log_lines if line["event"] == "lease lost, the process ends"]
    assert line["why"].startswith("not renewed for 10 s; ")
    assert "/leases/streamapp-operator: no answer" in line["why"]
    assert line["log_level"] == "error"


def test_an_api_server_that_is_away_for_less_than_that_costs_nothing() -> None:
    async def story(election: Election) -> None:
        first, second = election.add(), election.add()
        await election.until(election.leaders, 5)
        before = election.leaders()
        for one in (first, second):
            one.weather.lost_requests = 1
        await asyncio.sleep(60)
        assert (election.leaders(), len(election.led)) == (before, 1)

    play(story)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(("retry_after", "most"), [(1.0, 5), (3.0, 3), (3600.0, 4)])
def test_an_api_server_that_wants_to_be_left_alone_is_and_the_lease_outlives_it(retry_after: float, most: int) -> None:
    async def story(election: Election) -> None:
        one = election.add()
        await election.until(one.believes, 1)
        one.weather.refused, one.weather.retry_after = "429", retry_after
        one.weather.refused_at.clear()
        await asyncio.sleep(TIMING.renew - 2.5)
        one.weather.refused = ""
        await asyncio.sleep(30)
        assert (one.believes(), one.losses) == (True, 0)
        times = one.weather.refused_at
        assert 1 <= len(times) <= most
        if retry_after == 3.0:
            assert min([later - earlier for earlier, later in pairwise(times)], default=3.0) > 2.2

    assert play(story).wrongs == []


def test_whoever_stands_by_waits_as_asked_but_no_longer_than_half_a_renewal() -> None:
    async def story(election: Election) -> None:
        one = election.add()
        await election.until(one.believes, 1)
        other = election.add()
        await asyncio.sleep(5)
        other.weather.refused, other.weather.retry_after = "429", 3600.0
        await asyncio.sleep(20)
        times = other.weather.refused_at
        assert 3 <= len(times) <= 6  # also when the Lease could be taken
        assert max(later - earlier for earlier, later in pairwise(times)) == pytest.approx(TIMING.renew / 2, abs=0.5)
        other.weather.refused = ""
        one.die()
        await election.until(other.believes, PROGRESS + TIMING.renew / 2)

    assert play(story).wrongs == []


def test_a_write_by_somebody_else_on_the_lease_costs_the_leader_nothing_and_holds_up_nobody() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        second = election.add()
        for _ in range(60):
            election.touch()
            await asyncio.sleep(0.5)
        assert election.leaders() == [first]
        first.die()
        for _ in range(36):
            election.touch()
            await asyncio.sleep(0.5)
        assert election.leaders() == [second]

    assert play(story).wrongs == []


def test_a_lease_that_somebody_removes_ends_the_leader_and_the_next_one_waits_its_time() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        second = election.add()
        await asyncio.sleep(10)
        election.remove()
        assert await election.until(lambda: first.is_over, 5) < 2.2
        assert 12 < await election.until(second.believes, 20) < 17.5
        assert second.elector.transitions == 2, "the number of the term goes on rising"

    assert play(story).wrongs == []


def test_a_lease_that_another_takes_by_force_ends_the_leader() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        election.name("a person")
        assert await election.until(lambda: first.losses, 5) < 2.2

    play(story)


@pytest.mark.parametrize("holder", [None, "", "pod-2"])
def test_a_holder_that_somebody_writes_by_hand_is_believed_by_nobody_who_stands_by(holder: str | None) -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        second = election.add()
        await asyncio.sleep(10)
        first.weather.lost_requests = 1000  # it hears of nothing, and believes until its time is over
        await asyncio.sleep(1)
        election.name(holder)
        assert await election.until(lambda: first.losses, 12) > 7
        assert 0 < await election.until(second.believes, 20) < 10
        assert second.elector.transitions == 2

    assert play(story).wrongs == []


@pytest.mark.guarantee(2)
def test_a_leader_that_wakes_up_late_knows_that_before_it_has_asked_anybody() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        election.add()
        first.freeze(30)
        first.task.cancel()  # not even its own renewal notices
        await asyncio.sleep(9)
        first.elector.check()
        await asyncio.sleep(1.1)
        with pytest.raises(Exception, match="not renewed for 10 s"):
            first.elector.check()
        assert first.losses == 1

    play(story)


def test_asking_the_api_server_shows_a_term_that_is_over_before_the_clock_does() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        await first.elector.confirm()
        election.remove()
        with pytest.raises(Exception, match="it is gone"):
            await first.elector.confirm()
        assert (first.losses, first.believes()) == (1, False)

    play(story)


@pytest.mark.guarantee(2)
def test_a_later_number_on_record_ends_a_leader_only_if_the_lease_is_another_s() -> None:
    """Records keep the numbers of a Lease that was counted before, and of processes without one."""

    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        await first.elector.give_way(10**9)
        assert (first.losses, first.believes()) == (0, True)
        election.remove()
        with pytest.raises(NotLeadingError, match="it is gone"):
            await first.elector.give_way(10**9)
        assert (first.losses, first.believes()) == (1, False)

    play(story)


@pytest.mark.guarantee(2)
def test_a_lease_that_still_names_it_confirms_no_term_that_is_over_by_the_clock() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        first.task.cancel()  # nothing renews it
        await asyncio.sleep(TIMING.renew + 1)
        assert election.lease()["holderIdentity"] == first.name
        with pytest.raises(NotLeadingError, match="not renewed for 10 s"):
            await first.elector.confirm()

    play(story)


@pytest.mark.guarantee(2)
def test_a_lease_that_another_takes_while_an_answer_is_lost_ends_the_leader_at_its_next_renewal() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        first.weather.lost_answers = 1
        await election.until(lambda: not first.weather.lost_answers, 5)
        election.name("a person")
        # The deadline of the request and a pause; by its clock alone the term would go on for eight seconds.
        assert await election.until(lambda: first.losses, 12) < TIMING.request + TIMING.retry + 0.5

    play(story)


def test_what_was_never_held_is_not_written() -> None:
    async def story(election: Election) -> None:
        one = election.add()
        with pytest.raises(ConflictError, match="it was never held"):
            await one.elector._write_own()

    play(story)


def test_a_term_that_is_over_is_not_renewed_any_more() -> None:
    async def story(election: Election) -> None:
        async def renew() -> None:
            raise AssertionError("it was renewed")

        first = election.add()
        await election.until(first.believes, 5)
        first.task.cancel()
        await asyncio.sleep(TIMING.renew + 1)
        first.elector.renew = renew  # type: ignore[method-assign]
        with pytest.raises(NotLeadingError):
            await first.elector.keep()
        assert first.losses == 1

    play(story)


@pytest.mark.parametrize(
    ("status", "kind", "step"),
    [
        ("403", RefusedError, "Role in namespace system with the verbs get, create and patch on leases"),
        ("404", NotFoundError, "set STREAMAPP_LEASE_NAMESPACE to the operator's own namespace"),
    ],
)
def test_what_keeps_it_from_standing_at_all_ends_it_with_the_next_step(
    status: str, kind: type[Exception], step: str
) -> None:
    async def story(election: Election) -> None:
        one = election.add()
        one.weather.refused = status
        await election.until(lambda: one.is_over, 5)
        assert isinstance(one.error, kind)
        assert step in str(one.error)
        assert "Lease system/streamapp-operator" in str(one.error)

    play(story)


def test_a_replica_that_cannot_see_the_lease_says_so_after_a_while_and_sees_it_again() -> None:
    async def story(election: Election) -> None:
        first = election.add()
        await election.until(first.believes, 5)
        second = election.add()
        assert second.elector.blind() != ""
        await asyncio.sleep(5)
        second.weather.refused = "401"
        await asyncio.sleep(5)
        assert second.elector.blind() == ""
        await asyncio.sleep(10)
        assert "401" not in second.elector.blind()
        assert "injected" in second.elector.blind()
        second.weather.refused = ""
        await election.until(lambda: second.elector.blind() == "", 3)
        assert election.leaders() == [first]

    play(story)


@pytest.mark.parametrize(
    ("timing", "named"),
    [
        (LeaseTiming(lease=15, renew=10, retry=2), ""),
        (LeaseTiming(lease=15, renew=13, retry=2), "STREAMAPP_LEASE_RENEW_SECONDS=13 must be less than 12.2727"),
        (LeaseTiming(lease=15, renew=10, retry=4), "STREAMAPP_LEASE_RETRY_SECONDS=4 must be a third of"),
    ],
)
def test_times_that_do_not_fit_each_other_are_named(timing: LeaseTiming, named: str) -> None:
    assert timing.fault().startswith(named)
    assert bool(timing.fault()) == bool(named)
    assert 2 * timing.request < timing.renew
