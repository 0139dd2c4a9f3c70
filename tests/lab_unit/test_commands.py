"""The command line before any cluster is asked."""

from pathlib import Path

from tests.lab_unit.conftest import RunLab


def test_the_log_of_an_unknown_part_names_the_known_ones(run_lab: RunLab) -> None:
    ran = run_lab("logs", "kubelett")
    assert ran.code == 1
    assert "error: log kubelett: unknown part" in ran.err
    assert "kubelet" in ran.err
    assert "supervisor" in ran.err


def test_a_log_of_a_lab_that_never_ran_says_so(run_lab: RunLab, tmp_path: Path) -> None:
    ran = run_lab("logs", "etcd", STREAMAPP_LAB_STATE=str(tmp_path))
    assert ran.code == 1
    assert "error: log etcd: none there" in ran.err


def test_logs_give_as_many_lines_as_asked(run_lab: RunLab, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "etcd.log").write_text("one\ntwo\nthree\n")
    ran = run_lab("logs", "etcd", "--lines", "2", STREAMAPP_LAB_STATE=str(tmp_path))
    assert (ran.out, ran.code) == ("two\nthree\n", 0)
    ran = run_lab("logs", "etcd", "--lines", "0", STREAMAPP_LAB_STATE=str(tmp_path))
    assert (ran.out, ran.code) == ("one\ntwo\nthree\n", 0)


def test_a_wrong_word_ends_with_two(run_lab: RunLab) -> None:
    ran = run_lab("upp")
    assert ran.code == 2
    assert "No such command 'upp'" in ran.err
