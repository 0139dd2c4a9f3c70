"""What a person sees of agents, on the screen and in sentences."""

import pytest

from streamapp.cli.model.explain import Question, explain
from tests.builders import NOW
from tests.cli.showing import Json, a_resource, screen
from tests.statuses import held_status


def with_agents(*states: str | None, source: str = "Standbys") -> Json:
    """Of three pods."""
    status = held_status()
    status["learnerSource"] = source
    for member, state in zip(status["members"], states, strict=True):
        if state is not None:
            member["agent"] = state
    return a_resource(status, {"spec.replicas": 2})


def why(resource: Json) -> tuple[str, ...]:
    """The sentences about agents."""
    return explain(resource, NOW).answers[Question.WHY][1:]


def rows(text: str, width: int = 80) -> list[list[str]]:
    assert all(len(line) <= width for line in text.splitlines())
    table = text[text.index("pod  process") :].split("\n\n", maxsplit=1)[0]
    return [line.split() for line in table.splitlines()]


def test_each_pod_says_what_its_agent_does() -> None:
    found = rows(screen(with_agents("Active", "Inactive", None)))
    assert found[0] == ["pod", "process", "volume", "active", "copies", "agent"]
    assert [row[5:] for row in found[1:]] == [["active", "stays"], ["inactive", "stays"], ["?", "leaves", "next"]]


def test_nothing_is_said_of_agents_where_there_are_none() -> None:
    resource = with_agents(None, None, None)
    assert rows(screen(resource))[0] == ["pod", "process", "volume", "active", "copies"]
    assert why(resource) == ()


def test_copies_on_demand_are_called_so() -> None:
    resource = with_agents("Active", "Active", "Active", source="OnDemand")
    assert "copies on demand" in screen(resource)
    assert why(resource) == ("Copies are made on demand: the tasks of a pod move before the pod leaves.",)
    resource["status"]["groupProtocol"] = "streams"
    (sentence,) = why(resource)
    assert sentence.endswith("the group gets standbys when a pod must leave, and its tasks move when it leaves.")


@pytest.mark.parametrize(
    ("states", "told"),
    [
        (("Unreachable", "Active", "Active"), ("The agent in pod 0 is not reachable.",)),
        (("Unreachable", "Active", "Unreachable"), ("The agents in pods 0 and 2 are not reachable.",)),
        (
            ("Unreachable", "Inactive", "Inactive"),
            (
                "The agent in pod 0 is not reachable.",
                "The agents in pods 1 and 2 are reachable, but the assignor for copies on demand is not active there.",
            ),
        ),
    ],
)
def test_agents_that_do_not_all_take_part_are_named(states: tuple[str, ...], told: tuple[str, ...]) -> None:
    assert why(with_agents(*states)) == told


def test_many_silent_agents_are_counted() -> None:
    resource = with_agents("Unreachable", "Unreachable", "Unreachable")
    members = resource["status"]["members"]
    members += [{**members[0], "ordinal": ordinal} for ordinal in range(3, 9)]
    assert why(resource) == ("The agents in 9 pods are not reachable.",)
