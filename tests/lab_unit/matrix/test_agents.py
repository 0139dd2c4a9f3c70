"""What is said to agents, and what is made of their answers."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from lab.errors import LabError, NotYetError
from lab.matrix import agents
from lab.matrix.agents import Agents
from lab.matrix.processes import free_ports
from streamapp.core.facts.ids import ProcessId

PROCESS = ProcessId.parse("00000000-0000-0000-0000-000000000001")


def said(**instance: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "agent": {
            "version": "0.1.0",
            "java": "17.0.1",
            "podUid": "process-0",
            "incarnation": "x",
            "sequence": 1,
            "ageMillis": 5,
        },
        "announcement": {"state": "unknown"},
        "instances": [{"applicationId": "app", "clientState": "RUNNING", "asides": [], **instance}],
        "asides": [],
    }


class Told:
    """What came to the server, and what it answers."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str, Any]] = []
        self.status = 200
        self.answer: Any = said(assignor={"class": "Ours", "isOurs": True}, tasks=[])


@contextmanager
def agent(told: Told) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            authorization = self.headers["Authorization"]
            told.requests.append((self.command, self.path, authorization, json.loads(body) if body else None))
            answer = json.dumps(told.answer).encode()
            self.send_response(told.status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_PUT = do_GET  # noqa: N815  # the name that http.server looks for

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_report_is_read_as_the_operator_reads_it_and_kept_as_it_came() -> None:
    told = Told()
    with agent(told) as port:
        asked = Agents("app", [port], token="secret")
        (word,) = asked.words()
    assert word.report.is_ours
    assert word.instance["assignor"]["class"] == "Ours"
    assert told.requests == [("GET", "/streamapp/v1/report", "Bearer secret", None)]
    assert asked.environment(0)["STREAMAPP_AGENT_TOKEN_SHA256"] == hashlib.sha256(b"secret").hexdigest()


def test_each_announcement_has_a_higher_epoch_and_is_renewed_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    with agent(told) as port:
        asked = Agents("app", [port])
        asked.tell(())
        asked.tell([PROCESS])
        asked.renew()
        monkeypatch.setattr(agents, "RENEWAL_SECONDS", 0.0)
        asked.renew()
    bodies = [body for _, _, _, body in told.requests]
    assert [body["epoch"]["counter"] for body in bodies] == [1, 2, 2]
    assert [body["processIds"] for body in bodies] == [[], [str(PROCESS)], [str(PROCESS)]]


def test_a_refusal_ends_the_trial_and_a_silent_agent_is_asked_again() -> None:
    told = Told()
    told.status, told.answer = 409, {"error": "a higher epoch is known"}
    with agent(told) as port, pytest.raises(LabError) as refused:
        Agents("app", [port]).tell(())
    assert not isinstance(refused.value, NotYetError)
    assert "409" in refused.value.why
    with pytest.raises(NotYetError):
        Agents("app", free_ports(1)).words()


@pytest.mark.parametrize("answer", [{}, said() | {"instances": []}], ids=["no report", "no instance yet"])
def test_a_report_of_no_use_is_asked_for_again(answer: dict[str, Any]) -> None:
    told = Told()
    told.answer = answer
    with agent(told) as port, pytest.raises(NotYetError):
        Agents("app", [port]).words()
