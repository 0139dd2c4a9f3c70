"""A case that fails is made smaller until no part can be left out."""

from random import Random

from tests.model import cases
from tests.model.shrink import minimal


def test_only_what_makes_a_stock_case_fail_is_left() -> None:
    random = Random(1)  # noqa: S311 - the same case in every run
    case = next(case for case in iter(lambda: cases.stock_case(random), None) if len(case["clients"]) > 4)
    task = next(iter(case["tasks"]))
    least = minimal(case, lambda one: len(one["clients"]) >= 2 and task in one["tasks"])
    assert len(least["clients"]) == 2
    assert list(least["tasks"]) == [task]
    for client in least["clients"]:
        assert client["threads"] == 1
        assert not client["copies"]
        assert client["lags"].keys() <= {task}


def test_only_what_makes_a_sticky_case_fail_is_left() -> None:
    random = Random(2)  # noqa: S311 - the same case in every run
    case = next(case for case in iter(lambda: cases.sticky_case(random), None) if len(case["subtopologies"]) > 1)
    least = minimal(case, lambda one: bool(one["members"]) and bool(one["subtopologies"]))
    assert [one["partitions"] for one in least["subtopologies"]] == [1]
    (member,) = least["members"]
    assert (member["standbys"], member["offsets"]) == ([], {})
