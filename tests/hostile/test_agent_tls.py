"""The shipped jar with a certificate, asked by the operator's own client: it changes, it is missing, it is broken."""

import time
from pathlib import Path

import pytest

from streamapp.agents.tls import AgentTls, trusting
from streamapp.core.facts.agent_reports import AgentReport, AgentSilent
from tests.brokers.certificates import Authority, Issued
from tests.hostile import jvms
from tests.hostile.jvms import Parts, RunningJvm

pytestmark = [pytest.mark.hostile, pytest.mark.timeout(600)]

NAME = "host-0.host.demo.svc"
FIRST, SECOND = Authority("first"), Authority("second")
LOOK_SECONDS = 1.2
"""The agent looks at its files once a second."""


def write(folder: Path, one: Issued) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "tls.key").write_text(one.key)
    (folder / "tls.crt").write_text(one.chain)


def issued(authority: Authority) -> Issued:
    return authority.issue("agents", ("*.host.demo.svc",))


def expected(authority: Authority) -> AgentTls:
    return AgentTls(trusting(authority.pem), NAME)


def with_folder(folder: Path) -> dict[str, str]:
    return {"STREAMAPP_AGENT_TLS_FOLDER": str(folder)}


@pytest.mark.parametrize("on_the_module_path", [False, True], ids=["class path", "module path"])
def test_the_agent_reports_over_tls_and_takes_a_new_certificate_without_a_restart(
    parts: Parts, tmp_path: Path, *, on_the_module_path: bool
) -> None:
    command = jvms.module_command if on_the_module_path else jvms.command
    write(tmp_path / "tls", issued(FIRST))
    line = command(parts, tmp_path, [jvms.agent(parts)])
    with RunningJvm(line, with_folder(tmp_path / "tls")) as host:
        host.tls = expected(FIRST)
        assert host.report().is_ours
        write(tmp_path / "tls", issued(SECOND))
        time.sleep(LOOK_SECONDS)
        reply = host.ask()
        assert isinstance(reply, AgentSilent)
        assert reply.is_untrusted
        host.tls = expected(SECOND)
        assert isinstance(host.ask(), AgentReport)
        assert host.end() == (7, "constructed CREATED\nclosed NOT_RUNNING\n", "begins\nends\n")


def test_an_application_whose_certificate_is_missing_runs_as_ever_and_its_agent_is_heard_later(
    parts: Parts, tmp_path: Path
) -> None:
    line = jvms.command(parts, tmp_path, [jvms.agent(parts)])
    with RunningJvm(line, with_folder(tmp_path / "tls")) as host:
        host.tls = expected(FIRST)
        assert host.line() == "constructed CREATED"
        reply = host.ask()
        assert isinstance(reply, AgentSilent)
        write(tmp_path / "tls", issued(FIRST))
        time.sleep(LOOK_SECONDS)
        assert host.report().is_ours
        code, out, err = host.end()
        assert (code, out) == (7, "closed NOT_RUNNING\n")
        assert "streamapp-agent: TLS: " in err
        assert "tls.crt is missing: create the Secret that spec.agent.tls names" in err
