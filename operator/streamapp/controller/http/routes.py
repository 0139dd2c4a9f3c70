"""Where the operator tells of applications over HTTP, beside its probes: paths, and how an answer becomes a response.

Handed to `health.serve` by `process`. What is answered is the business of `answering` and `history`.
"""

from aiohttp import web

from streamapp.api.http.messages import OPERATOR_PATH
from streamapp.controller.http.answers import Answer, Answers, Question
from streamapp.controller.http.sending import Sending
from streamapp.controller.record.reader import History
from streamapp.kube.client.kinds import Key


def of_answers(answers: Answers) -> list[web.RouteDef]:
    """What is told of applications; the paths are those of `streamapp.api.http.messages`."""
    sending = Sending()

    async def about_operator(_: web.Request) -> web.Response:
        return _response(answers.about_operator())

    async def about(request: web.Request) -> web.Response:
        key = Key(request.match_info["namespace"], request.match_info["name"])
        return await sending.send(
            request, _response(await answers.about(Question(request.match_info["question"]), key))
        )

    questions = "|".join(question.value for question in Question)
    return [
        web.get(OPERATOR_PATH, about_operator),
        web.get(f"/v1/apps/{{namespace}}/{{name}}/{{question:{questions}}}", about),
    ]


def _response(answer: Answer) -> web.Response:
    kind = "application/json" if answer.is_json else "text/plain"
    again = {} if answer.status != 503 else {"Retry-After": "5"}
    return web.Response(status=answer.status, body=answer.body, content_type=kind, headers=again)


def of_history(history: History) -> list[web.RouteDef]:
    """What is told from the flight record."""
    sending = Sending()

    async def about(request: web.Request) -> web.Response:
        key = Key(request.match_info["namespace"], request.match_info["name"])
        told = await history.about(key, request.query.get("since", ""))
        kind = "application/json" if told.status == 200 else "text/plain"
        return await sending.send(request, web.Response(status=told.status, text=told.body, content_type=kind))

    return [web.get("/v1/apps/{namespace}/{name}/history", about)]
