"""Stamps come out of the logs as Kafka writes them, and cut a gap into parts that add up to it."""

from tests.benchmarks.handover.page import every_move, gaps_table, parts_table
from tests.benchmarks.handover.parts import PARTS, CutGap, cut, summarised
from tests.benchmarks.handover.stamps import STAMPS, Hop, Line, read_log, stamps

OWNER = """Picked up JDK_JAVA_OPTIONS
2026-11-25T06:05:40.000Z INFO StreamThread - State transition from RUNNING to PARTITIONS_REVOKED
2026-11-25T06:05:40.030Z INFO StreamTask - stream-thread [x] task [0_1] Suspended from RUNNING
2026-11-25T06:05:40.040Z INFO StreamThread - stream-thread [x] partition revocation took 40 ms.
2026-11-25T06:05:40.050Z INFO ConsumerCoordinator - [Consumer clientId=x] (Re-)joining group
2026-11-25T06:05:40.900Z INFO ConsumerCoordinator - [Consumer clientId=x] (Re-)joining group
"""
HEIR = """2026-11-25T06:05:39.500Z INFO ConsumerCoordinator - [Consumer clientId=y] (Re-)joining group
2026-11-25T06:05:40.120Z INFO ConsumerCoordinator - [Consumer clientId=y] (Re-)joining group
2026-11-25T06:05:40.150Z INFO TaskManager - stream-thread [y] Handle new assignment with:
\tNew active tasks: [0_11, 0_1]
\tNew standby tasks: []
2026-11-25T06:05:40.200Z INFO StreamTask - stream-thread [y] task [0_1] Initialized
2026-11-25T06:05:40.310Z INFO DefaultStateUpdater - state-updater [y] Stateful active task 0_1 completed restoration
2026-11-25T06:05:40.400Z INFO StreamTask - stream-thread [y] task [0_1] Restored and ready to run
"""
ZERO = read_log("2026-11-25T06:05:40.000Z INFO a - b")[0].at_ms
LOGS = {0: read_log(OWNER), 2: read_log(HEIR)}
HOP = Hop("0_1", 0, 2, ZERO - 1_000, ZERO + 2_000)


def test_a_line_without_a_time_belongs_to_the_one_before() -> None:
    assert read_log("said before\n2026-11-25T06:05:40.000Z INFO a - b\n\tc") == [Line(ZERO, "a - b\n\tc")]


def test_every_moment_of_a_move_is_found() -> None:
    found = {name: at - ZERO for name, at in stamps(LOGS, HOP).items()}
    assert found == dict(zip(STAMPS, (0, 40, 50, 120, 150, 200, 310, 400), strict=True))


def test_a_move_that_the_logs_do_not_show_has_no_moments() -> None:
    assert stamps(LOGS, Hop("0_11", 0, 2, HOP.start_ms, HOP.end_ms)) == {}
    assert stamps(LOGS, Hop("0_1", 0, 2, ZERO + 1_000, ZERO + 2_000)) == {}


def test_parts_add_up_to_the_gap() -> None:
    parts = cut(ZERO - 20, ZERO + 450, stamps(LOGS, HOP))
    assert parts == (0.02, 0.04, 0.01, 0.07, 0.03, 0.05, 0.11, 0.09, 0.05)
    assert len(parts) == len(PARTS)


def test_what_lies_outside_the_gap_cuts_nothing_off() -> None:
    assert cut(ZERO + 60, ZERO + 350, stamps(LOGS, HOP)) == (0, 0, 0, 0.06, 0.03, 0.05, 0.11, 0.04, 0)
    assert cut(ZERO, ZERO + 450, {"revoke": ZERO}) is None


def test_the_tables_have_medians_and_mean_parts() -> None:
    one, two = (0.1,) * 9, (0.3,) * 9
    found = [
        CutGap("ours", "fresh", 0, 1, 0.9, one),
        CutGap("ours", "fresh", 0, 2, 2.7, two),
        CutGap("ours", "fresh", 1, 2, 1.0, None),
    ]
    summaries = summarised(found, {("ours", "fresh"): 0.25})
    assert gaps_table(summaries).splitlines()[-1] == "| ours | fresh | 3 | 1.00 | 2.70 | 0.25 |"
    assert parts_table(summaries).splitlines()[-1] == f"| ours | fresh | {'200 | ' * 9}1800 |"
    assert every_move(found) == "- ours, fresh: 0.90 2.70; 1.00\n"
