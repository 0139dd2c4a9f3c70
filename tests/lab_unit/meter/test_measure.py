"""When a window counts as over."""

import pytest

from lab.errors import LabError
from lab.meter.gaps import Window
from lab.meter.measure import require_over

WINDOW = Window(1_000, 2_000)


@pytest.mark.parametrize(
    ("now_ms", "newest_ms"),
    [
        (2_000, [None, None]),
        (1_500, [1_200, 1_999]),
        (0, [5_000, None]),
    ],
    ids=["nothing appended but our clock is past it", "our clock is behind", "our clock is far behind"],
)
def test_a_window_is_over_if_the_broker_stamped_its_end_or_our_clock_is_past_it(
    now_ms: float, newest_ms: list[int | None]
) -> None:
    asked = iter(newest_ms)
    require_over(WINDOW, now_ms, asked)
    assert (next(asked, "end") == newest_ms[0]) is (now_ms >= WINDOW.end_ms), "the broker is asked only if needed"


def test_a_window_that_is_over_by_neither_clock_is_refused() -> None:
    with pytest.raises(LabError) as raised:
        require_over(WINDOW, 1_999.9, [1_998, None])
    assert raised.value == LabError(
        "window: ends in the future", "what is not written yet would count as a gap", "wait for its end"
    )
