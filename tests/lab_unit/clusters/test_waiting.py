"""Waiting goes on through what may pass, and ends at once with what will not."""

import pytest

from lab.clusters.kubectl import wait_until
from lab.errors import LabError, NotYetError


def test_what_may_pass_is_asked_again_until_it_holds() -> None:
    asked = []

    def holds() -> bool:
        asked.append(1)
        if len(asked) == 1:
            raise NotYetError("api", "refused", "wait")
        return len(asked) == 3

    wait_until("ready", holds, timeout_seconds=5, interval_seconds=0)
    assert len(asked) == 3


def test_what_will_not_pass_ends_the_wait_with_its_own_words() -> None:
    asked = []

    def holds() -> bool:
        asked.append(1)
        raise LabError("preload: failed", "no such topic", "make the topic")

    with pytest.raises(LabError) as raised:
        wait_until("ready", holds, timeout_seconds=5, interval_seconds=0)
    assert (raised.value.what, len(asked)) == ("preload: failed", 1)


def test_time_that_runs_out_names_the_last_cause() -> None:
    def holds() -> bool:
        raise NotYetError("api", "connection refused", "wait")

    with pytest.raises(LabError) as raised:
        wait_until("ready", holds, timeout_seconds=0.05, interval_seconds=0.01)
    assert raised.value.why == "connection refused"
