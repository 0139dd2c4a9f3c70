"""What-ifs over tables that Spark made: the present settings give the figures of gold."""

import pytest

from streamapp.analytics.report.tables import read_tables
from streamapp.analytics.report.whatif.outcome import what_if
from streamapp.analytics.report.whatif.policy import Policy
from tests.analytics.conftest import FLEET, Whole

pytestmark = [pytest.mark.analytics, pytest.mark.timeout(900)]


def test_the_present_settings_give_the_figures_of_gold(whole: Whole) -> None:
    tables = read_tables(whole.root, FLEET.days)
    found = {
        key[2]: what_if(tables.of(key), [Policy(window_s=300)])
        for key in tables.rows["s_seen"].spans
        if key[2] in {f"app-{number:03d}" for number in range(FLEET.apps)}
    }
    assert len(found) == FLEET.apps
    for one in found.values():
        assert one.refusal == ""
        assert one.seen.pod_h > 0
        assert one.pod_error == pytest.approx(0, abs=0.005)
        assert one.held_error == pytest.approx(0, abs=0.005)
        assert (one.present.raises, one.present.removals) == (one.seen.raises, one.seen.removals)
        assert one.others[0].held_s.mid > one.present.held_s.mid
        assert (one.present.stood.least, one.present.stood.most) == pytest.approx(
            (one.seen.stood.least, one.seen.stood.most)
        )
