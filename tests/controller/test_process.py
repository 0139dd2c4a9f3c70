"""The start of the process: what it waits for, and what ends it."""

import asyncio

import pytest
from kubernetes.aio.client.configuration import Configuration

from streamapp.controller.lifecycle import work_in_turn
from streamapp.controller.process import CannotStartError, Operator
from streamapp.controller.settings import Settings
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, RefusedError, UnavailableError
from streamapp.kube.client.kinds import Kind
from tests.prove.virtual_time import VirtualLoop, run

AWAY = UnavailableError("GET /apis", "no answer within 10 s", "see that the API server can be reached")


class _Client(KubeClient):
    """Only knows what it answers when asked for the definition."""

    def __init__(self, *answers: bool | KubeError) -> None:
        super().__init__(Configuration(host="http://127.0.0.1:1"), deadline_seconds=1)
        self.answers = iter(answers)
        self.asked_at: list[float] = []

    async def serves(self, kind: Kind) -> bool:  # noqa: ARG002 (as the real one)
        self.asked_at.append(asyncio.get_running_loop().time())
        answer = next(self.answers, AWAY)
        if isinstance(answer, KubeError):
            raise answer
        return answer


def start(*answers: bool | KubeError, stop_after: float = 1e6) -> tuple[list[float], list[str]]:
    """Start the operator until its work ends; give when it asked for the definition, and what it then did."""
    done: list[str] = []

    async def main() -> list[float]:
        client = _Client(*answers)
        operator, stop = Operator(Settings(), client), asyncio.Event()
        asyncio.get_running_loop().call_later(stop_after, stop.set)

        async def work() -> None:
            done.append("work")

        try:
            await work_in_turn(operator, stop, lambda: {"work": work()})
        finally:
            await client.close()
        return client.asked_at

    return run(VirtualLoop(), main()), done


def test_a_start_while_the_api_server_is_away_waits_for_it() -> None:
    assert start(AWAY, AWAY, AWAY, True) == ([0, 2, 4, 6], ["work"])


def test_a_process_that_waits_for_the_api_server_ends_when_it_is_told_to() -> None:
    asked_at, done = start(stop_after=7)
    assert (asked_at, done) == ([0, 2, 4, 6], [])


@pytest.mark.parametrize(
    ("answer", "error"),
    [(False, CannotStartError), (RefusedError("GET /apis", "forbidden", "grant it"), RefusedError)],
)
def test_a_missing_definition_or_right_ends_the_process(answer: bool | KubeError, error: type[Exception]) -> None:
    with pytest.raises(error):
        start(AWAY, answer)
