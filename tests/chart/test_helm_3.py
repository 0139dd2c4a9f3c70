"""The chart by the older Helm, which many still have: it must make the same of it."""

import pytest

from tests.chart.rendering import CASES, Json, Rendered, render

pytestmark = [pytest.mark.chart, pytest.mark.timeout(300)]


@pytest.mark.parametrize("case", CASES)
def test_helm_3_renders_the_same_as_helm_4(case: str) -> None:
    def sorted_objects(found: Rendered) -> list[Json]:
        return sorted(
            found.objects, key=lambda each: (each["kind"], each["metadata"]["name"], each["metadata"].get("namespace"))
        )

    assert sorted_objects(render(CASES[case], 3)) == sorted_objects(render(CASES[case], 4))


def test_the_job_before_an_uninstall_can_be_left_out() -> None:
    assert render({"uninstall": {"prepare": False}}, 3).of("Job") == []
