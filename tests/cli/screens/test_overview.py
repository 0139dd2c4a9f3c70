"""Many StreamApps, one line each: that figures survive every width and name."""

import pytest

from streamapp.cli.model.app_view import view_of
from streamapp.cli.screens.overview import overview_screen
from tests.builders import NOW, a_snapshot
from tests.cli.showing import Json, a_resource, shown
from tests.cli.states import every_cell
from tests.statuses import answer, held_status
from tests.streamapps import stored

LONG = "payments-with-a-name-that-is-as-long-as-one-can-be-x"


def lines(*resources: Json, width: int, with_namespace: bool = False) -> list[str]:
    views = [view_of(resource, NOW) for resource in resources]
    return shown(overview_screen(views, with_namespace=with_namespace), width)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_figure_and_no_reason_is_cut(width: int) -> None:
    resource = a_resource(held_status(), {"spec.replicas": 2}, name=LONG)
    resource["status"]["scaleDown"]["estimatedCompletionTime"] = "2026-11-21T12:03:20Z"
    told = lines(resource, width=width, with_namespace=True)
    first = told[1].split()
    assert max(map(len, told)) <= width
    assert first[2:8] == ["2", "3", "3", "0", "%", "held"]
    assert first[-2:] == ["3m20s", "1d"]
    assert "LearnersCatchingUp" in " ".join(told).split()
    begin = told[0].index("name ", len("namespace"))
    end = begin + len(first[1])
    assert "".join(line[begin:end].strip() for line in told[1:]) == LONG


def test_titles_are_short_only_where_they_must_be() -> None:
    resource = a_resource(held_status(), name="words")
    assert lines(resource, width=80)[0].split()[1:5] == ["desired", "current", "ready", "converged"]
    assert lines(resource, width=80, with_namespace=True)[0].split()[2:6] == ["want", "cur", "ready", "conv"]


def test_the_order_is_that_of_namespaces_and_names() -> None:
    settled = answer(a_snapshot(desired=3, record=None))
    resources = [
        a_resource(settled, {"metadata.namespace": namespace}, name=name)
        for namespace, name in (("b", "a"), ("a", "z"), ("a", "b"))
    ]
    assert [line.split()[:2] for line in lines(*resources, width=120, with_namespace=True)[1:]] == [
        ["a", "b"],
        ["a", "z"],
        ["b", "a"],
    ]


@pytest.mark.slow
def test_every_cell_of_the_state_table_is_one_line_with_its_reason() -> None:
    for resource in every_cell():
        _, line = lines(resource, width=140)
        view = view_of(resource, NOW)
        assert view.state.value in line
        assert view.main_condition is not None
        assert view.main_condition.reason in line or view.state.value == "settled"


def test_a_status_that_cannot_be_read_is_no_status() -> None:
    resource = stored({"status": {"observedGeneration": "four", "replicas": 3}})
    assert lines(resource, width=120)[1].split()[:6] == ["wordcount", "3", "none", "?", "?", "unanswered"]
