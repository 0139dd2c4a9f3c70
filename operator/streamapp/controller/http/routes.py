"""The HTTP routes for applications: paths, responses, and a limit on responses that are being sent.

Served by `lifecycle` on the loopback address, so that the API server decides who reads: a port-forward takes a right in
the operator's namespace. The contents come from `http.answers` and `record.reader`. A slow reader keeps its response in
the leader's memory; so only a few responses are sent at once, each for a limited time.
"""

import asyncio
from collections.abc import Iterable

import structlog
from aiohttp import web

from streamapp.api.http.messages import OPERATOR_PATH
from streamapp.controller.http.answers import Answers, Endpoint, HttpAnswer
from streamapp.controller.http.probes import runner_of
from streamapp.controller.record.reader import RecordHistory
from streamapp.kube.client.kinds import Key

log = structlog.get_logger()

LOOPBACK = "127.0.0.1"
MOST_AT_ONCE = 16
"""Responses that are being sent; more are refused."""


LONGEST_SECONDS = 30.0
"""For sending one response."""


async def serve_people(routes: Iterable[web.RouteDef], port: int) -> web.AppRunner:
    """Serve on the loopback address; `cleanup` of what it gives ends it.

    A port that is taken must not keep applications unserved: it is logged, and nothing is served here.
    """
    runner = await runner_of(routes)
    try:
        await web.TCPSite(runner, LOOPBACK, port).start()
    except OSError as error:
        log.warning("cannot answer the command line", port=port, error=str(error))
    return runner


class ResponseLimiter:
    """Limits the responses that are being sent."""

    def __init__(self) -> None:
        self._under_way = 0

    async def send(self, request: web.Request, response: web.Response) -> web.Response:
        """Send it all before this returns; a reader who does not take it in time loses the connection."""
        if self._under_way >= MOST_AT_ONCE:
            refusal = "too many responses are being sent: try again in some seconds"
            return web.Response(status=503, text=refusal, headers={"Retry-After": "5"})
        self._under_way += 1
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                await response.prepare(request)
                await response.write_eof()
        except (TimeoutError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()  # closing it would wait for the reader again
        finally:
            self._under_way -= 1
        return response


def of_answers(answers: Answers) -> list[web.RouteDef]:
    """Routes to tasks and findings; `streamapp.api.http.messages` has the paths."""
    sending = ResponseLimiter()

    async def about_operator(_: web.Request) -> web.Response:
        return _response(answers.about_operator())

    async def about(request: web.Request) -> web.Response:
        key = Key(request.match_info["namespace"], request.match_info["name"])
        return await sending.send(
            request, _response(await answers.about(Endpoint(request.match_info["question"]), key))
        )

    questions = "|".join(question.value for question in Endpoint)
    return [
        web.get(OPERATOR_PATH, about_operator),
        web.get(f"/v1/apps/{{namespace}}/{{name}}/{{question:{questions}}}", about),
    ]


def _response(answer: HttpAnswer) -> web.Response:
    kind = "application/json" if answer.is_json else "text/plain"
    again = {} if answer.status != 503 else {"Retry-After": "5"}
    return web.Response(status=answer.status, body=answer.body, content_type=kind, headers=again)


def of_history(history: RecordHistory) -> list[web.RouteDef]:
    """The route to the flight record."""
    sending = ResponseLimiter()

    async def about(request: web.Request) -> web.Response:
        key = Key(request.match_info["namespace"], request.match_info["name"])
        answer = await history.about(key, request.query.get("since", ""))
        kind = "application/json" if answer.status == 200 else "text/plain"
        return await sending.send(request, web.Response(status=answer.status, text=answer.body, content_type=kind))

    return [web.get("/v1/apps/{namespace}/{name}/history", about)]
