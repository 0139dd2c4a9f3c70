"""What the agent promises while looks are slow, on the module path, and where nobody can reach it."""

import socket
import time
from pathlib import Path

import pytest

from streamapp.agents.answers import AnnouncementOutcome
from streamapp.core.facts.agent_reports import AgentReport, AnnouncementState
from tests.hostile import jvms
from tests.hostile.jvms import Parts, RunningJvm

pytestmark = [pytest.mark.hostile, pytest.mark.timeout(600)]


def test_looks_of_more_than_two_seconds_leave_every_answer_within_the_operators_deadline(
    parts: Parts, tmp_path: Path
) -> None:
    with RunningJvm(jvms.command(parts, tmp_path, [jvms.agent(parts)])) as host:
        process_id = host.report().process_id
        assert host.line() == "constructed CREATED"
        assert host.tell("slow") == "slow done"
        time.sleep(1.1)
        replies = [host.ask() for _ in range(8)]
        assert all(isinstance(reply, AgentReport) for reply in replies), replies
        assert process_id is not None
        assert host.announce([process_id]) is AnnouncementOutcome.TAKEN
        assert host.report().heard.state is AnnouncementState.SET


@pytest.mark.parametrize("version", ["17", "25"])
def test_an_application_on_the_module_path_has_the_whole_agent(version: str, parts: Parts, tmp_path: Path) -> None:
    with RunningJvm(jvms.module_command(parts, tmp_path, [jvms.agent(parts)], parts.java(version))) as host:
        report = host.report()
        assert (report.is_ours, report.aside, report.process_id is None) == (True, None, False)
        assert host.end() == (7, "constructed CREATED\nclosed NOT_RUNNING\n", "begins\nends\n")


def test_an_agent_that_cannot_listen_changes_no_setting(parts: Parts, tmp_path: Path) -> None:
    logged = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka=info"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = jvms.run(
            jvms.command(parts, tmp_path, [jvms.agent(parts), logged]), "start\n", port=taken.getsockname()[1]
        )
    assert (ran.code, "streamapp-agent: the server stays off, port " in ran.err) == (7, True)
    assert "heartbeat.interval.ms = 3000" in ran.err
    assert "heartbeat.interval.ms = 500" not in ran.err


def test_a_process_that_leaves_closes_while_its_start_waits_for_a_global_store(parts: Parts, tmp_path: Path) -> None:
    with RunningJvm([*jvms.command(parts, tmp_path, [jvms.agent(parts)]), "global"]) as host:
        process_id = host.report().process_id
        assert process_id is not None
        assert host.announce([process_id]) is AnnouncementOutcome.TAKEN
        assert host.line() == "constructed CREATED"
        assert host.tell("start-aside") == "start-aside begun"
        time.sleep(1)
        assert host.tell("close-aside") == "close-aside leaves"
        assert host.kill() == "begins\n", "Kafka's own close ran"
