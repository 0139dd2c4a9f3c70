"""Days are built again as far as a changed configuration reaches, and no further."""

from hypothesis import given
from hypothesis import strategies as st

from streamapp.analytics.incremental import Limit, Limits, reached

A, B = ("c", "n", "a", "u1"), ("c", "n", "b", "u2")
DAYS = {f"2026-11-{n:02d}" for n in range(1, 10)}


def limit(app: tuple[str, ...], start: int, end: int | None = None, lag: int = 100) -> Limit:
    return Limit(app, f"2026-11-{start:02d} 12:00:00", None if end is None else f"2026-11-{end:02d} 12:00:00", lag, ())


def days(since: int) -> set[str]:
    return {day for day in DAYS if day >= f"2026-11-{since:02d}"}


def asked(changed: int, before: set[Limit], after: set[Limit], known: set[tuple[str, ...]]) -> set[str]:
    return reached({f"2026-11-{changed:02d}"}, DAYS, Limits(frozenset(before), frozenset(after), frozenset(known)))


def test_the_same_configuration_reaches_nowhere() -> None:
    assert asked(5, {limit(A, 1)}, {limit(A, 1)}, {A}) == {"2026-11-05"}


def test_a_change_reaches_forward() -> None:
    assert asked(5, {limit(A, 1)}, {limit(A, 1, 5), limit(A, 5, None, 200)}, {A}) == days(5)


def test_a_change_that_came_late_reaches_back_to_when_it_was_made() -> None:
    assert asked(5, {limit(A, 1)}, {limit(A, 1, 3), limit(A, 3, None, 200)}, {A}) == DAYS


def test_the_first_configuration_of_an_application_holds_for_the_lines_before_it() -> None:
    assert asked(5, set(), {limit(A, 5)}, {A}) == DAYS
    assert asked(5, {limit(B, 1)}, {limit(B, 1), limit(A, 5)}, {A, B}) == DAYS


def test_a_new_application_has_no_lines_before_it_to_be_built_again() -> None:
    assert asked(5, {limit(B, 1)}, {limit(B, 1), limit(A, 5)}, {B}) == days(5)


ROWS = st.sets(st.builds(limit, st.sampled_from([A, B]), st.integers(1, 9), st.none(), st.integers(1, 2)), max_size=4)


def in_force(rows: set[Limit], app: tuple[str, ...], day: str) -> int | None:
    """The limit at noon of a day, straight from its definition."""
    own = sorted((row.start, row.lag) for row in rows if row.app == app)
    earlier = [lag for start, lag in own if start <= f"{day} 12:00:00"]
    return earlier[-1] if earlier else next((lag for _, lag in own), None)


def closed(rows: set[Limit]) -> set[Limit]:
    """One row for a time, each ending where the next one begins."""
    found = set()
    for app in (A, B):
        own = sorted({row.start: row for row in rows if row.app == app}.items())
        ends = [*(start for start, _ in own[1:]), None][: len(own)]
        found |= {row._replace(end=end) for (_, row), end in zip(own, ends, strict=True)}
    return found


@given(ROWS, ROWS, st.integers(1, 9), st.sets(st.sampled_from([A, B])))
def test_every_day_whose_limit_is_another_one_is_built(
    one: set[Limit], other: set[Limit], changed: int, known: set[tuple[str, ...]]
) -> None:
    before, after = closed(one), closed(other)
    built = asked(changed, before, after, known)
    for app in (A, B):
        for day in DAYS - built:
            has_lines = app in known or day >= f"2026-11-{changed:02d}"
            assert not has_lines or in_force(before, app, day) == in_force(after, app, day)
