"""Doors of the JDK stay as closed for the application as they are without the agent."""

from pathlib import Path

import pytest

from tests.hostile import jvms
from tests.hostile.jvms import Parts, RunningJvm

pytestmark = [pytest.mark.hostile, pytest.mark.timeout(600)]

CLOSED = "doors IllegalAccessException InaccessibleObjectException"


def test_nothing_of_the_jdk_is_opened_to_the_application(parts: Parts, tmp_path: Path) -> None:
    assert jvms.run(jvms.command(parts, tmp_path, []), "doors\n").out.splitlines()[1] == CLOSED
    with RunningJvm(jvms.command(parts, tmp_path, [jvms.agent(parts)])) as host:
        assert host.report().is_ours, "the agent has used the doors"
        assert host.line() == "constructed CREATED"
        assert host.tell("doors") == CLOSED
