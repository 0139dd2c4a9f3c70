"""The door of an agent, as whoever has the operator's key finds it."""

import http.client
import json
from typing import Any

from lab.scenarios import operator_deployment
from lab.scenarios.observed_app import ObservedApp
from streamapp.wire.agent_token import token

PORT = 7711
REPORT, LEAVING = "/streamapp/v1/report", "/streamapp/v1/leaving"


def address(one: ObservedApp, ordinal: int) -> str:
    """Of a pod."""
    return str(one.pod(ordinal)["status"]["podIP"])


def secret(one: ObservedApp) -> str:
    """The token that the agents of the application accept."""
    return token(operator_deployment.agent_key(one.app.kubectl), one.app.read()["metadata"]["uid"])


def bearer(one: ObservedApp) -> dict[str, str]:
    """The header with it."""
    return {"Authorization": f"Bearer {secret(one)}"}


def ask(host: str, verb: str, path: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, bytes]:
    """Send one request."""
    connection = http.client.HTTPConnection(host, PORT, timeout=5)
    try:
        connection.request(verb, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def report(one: ObservedApp, ordinal: int) -> dict[str, Any]:
    """What the agent of a pod says now."""
    status, answer = ask(address(one, ordinal), "GET", REPORT, bearer(one))
    assert status == 200, answer
    found: dict[str, Any] = json.loads(answer)
    return found
