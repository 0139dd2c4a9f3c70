"""What the operator answers over HTTP: a real server in this process, over a bench with its passes."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from streamapp.api.http.messages import (
    Findings,
    GroupTold,
    OperatorTold,
    Tasks,
    findings_path,
    group_path,
    read,
    tasks_path,
)
from streamapp.controller.http import answers as answering
from streamapp.controller.http import routes
from streamapp.controller.http.answers import CACHE_SECONDS, Answers
from streamapp.controller.http.routes import of_answers, serve_people
from streamapp.controller.settings import Settings
from streamapp.core.doctor.diagnoses import Diagnosis, FindingKind
from streamapp.core.facts.group import GroupDescription, GroupState, StreamsSupport
from tests.controller.doubles.bench import KEY, NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE

TASKS, FINDINGS = tasks_path(NAMESPACE, NAME), findings_path(NAMESPACE, NAME)
GROUP = group_path(NAMESPACE, NAME)


@dataclass
class Door:
    """The server, and who asks."""

    bench: Bench
    session: aiohttp.ClientSession
    url: str
    leads: bool = True

    async def ask(self, path: str) -> tuple[int, bytes]:
        async with self.session.get(self.url + path) as response:
            return response.status, await response.read()

    async def tasks(self) -> Tasks:
        status, body = await self.ask(TASKS)
        assert status == 200, body
        return read(Tasks, body)

    async def findings(self) -> Findings:
        status, body = await self.ask(FINDINGS)
        assert status == 200, body
        return read(Findings, body)

    async def found(self) -> dict[str, str]:
        """The particulars of what was found, by code, from a new build."""
        self.bench.clock.move(CACHE_SECONDS)
        told = await self.findings()
        return {one.code: one.detail for one in told.findings if one.kind == FindingKind.FOUND.value}


@asynccontextmanager
async def a_door(bench: Bench) -> AsyncIterator[Door]:
    door = Door(bench, aiohttp.ClientSession(), "")
    answers = Answers(
        Settings(instance="op-1", namespaces=("demo",)),
        bench.applications,
        bench.keys,
        lambda: door.leads,
        bench.clock.now,
        bench.clock.monotonic,
    )
    runner = await serve_people(of_answers(answers), 0)
    door.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield door
    finally:
        await door.session.close()
        await runner.cleanup()


def at_the_door(play: Callable[[Door], Coroutine[Any, Any, None]], **spec: Any) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        async with a_bench(4, **spec) as bench, a_door(bench) as door:
            await play(door)

    asyncio.run(run())


def test_the_tasks_are_those_of_the_group_with_the_age_of_the_facts() -> None:
    async def play(door: Door) -> None:
        told = await door.tasks()
        group = door.bench.group
        owners = {str(task): (one.pod.ordinal, one.id) for one in group.members.values() for task in one.active}
        standbys = {(str(task), one.pod.ordinal) for one in group.members.values() for task in one.standby}
        assert {one.task: (one.owner.ordinal, one.owner.member) for one in told.tasks if one.owner} == owners
        assert {
            (one.task, copy.ordinal) for one in told.tasks for copy in one.copies if copy.role == "standby"
        } == standbys
        assert {one.state for one in told.tasks} == {"running"}
        assert (told.namespace, told.name, told.highest, told.limit) == (NAMESPACE, NAME, 3, 10_000)
        assert told.told_at is not None
        assert told.group_read_at is not None
        assert told.told_at > told.as_of > told.group_read_at

    at_the_door(play)


def test_the_group_is_that_of_the_newest_reading_though_no_pass_followed_it() -> None:
    async def play(door: Door) -> None:
        status, body = await door.ask(GROUP)
        before = read(GroupTold, body)
        assert (status, before.protocol, before.state, before.settled) == (200, "classic", "Stable", True)
        assert (before.members, before.static_members) == (len(door.bench.group.members), 0)
        application = door.bench.applications.find(KEY)
        assert application is not None
        latest = application.memory.readings[0]
        emptied = replace(latest, ended_at=door.bench.clock.now(), group=GroupDescription(GroupState.EMPTY))
        application.memory.readings = (emptied, *application.memory.readings)
        application.memory.streams_support = StreamsSupport(is_on=True, release="4.3")
        after = read(GroupTold, (await door.ask(GROUP))[1])
        assert (after.members, after.state, after.as_of) == (0, "Empty", emptied.ended_at)
        assert (after.streams_supported, after.broker_release, after.settled) == (True, "4.3", False)
        assert after.told_at is not None

    at_the_door(play)


def test_a_reader_reads_nothing_from_anywhere_and_any_number_of_them_cost_one_build(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builds: list[int] = []
    build = answering._build

    def counted(*arguments: Any) -> bytes:
        builds.append(threading.get_ident())
        return build(*arguments)

    monkeypatch.setattr(answering, "_build", counted)

    async def play(door: Door) -> None:
        reads, asked = len(door.bench.server.reads), len(door.bench.agents.asked)
        for _ in range(3):
            answers = await asyncio.gather(*(door.ask(TASKS) for _ in range(20)))
            assert {status for status, _ in answers} == {200}
        assert len(builds) == 1
        # In another thread, so that a large application keeps no pass from being made.
        assert builds[0] != threading.get_ident()
        assert (len(door.bench.server.reads), len(door.bench.agents.asked)) == (reads, asked)
        assert await door.ask(FINDINGS) != await door.ask(TASKS)
        assert len(builds) == 2

    at_the_door(play)


def test_an_answer_is_built_anew_after_some_seconds_and_tells_its_age_meanwhile() -> None:
    async def play(door: Door) -> None:
        first = await door.tasks()
        door.bench.desired(5)
        await door.bench.run(lambda: door.bench.is_settled(5), 400)
        second = await door.tasks()
        assert (first.highest, second.highest) == (3, 4)
        door.bench.clock.move(CACHE_SECONDS / 2)
        third = await door.tasks()
        assert third.as_of == second.as_of
        assert third.told_at is not None
        assert (third.told_at - third.as_of).total_seconds() >= CACHE_SECONDS / 2

    at_the_door(play)


def test_who_does_not_lead_answers_nothing_but_who_it_is() -> None:
    async def play(door: Door) -> None:
        door.leads = False
        assert [(await door.ask(path))[0] for path in (TASKS, FINDINGS)] == [503, 503]
        status, body = await door.ask("/v1/operator")
        told = read(OperatorTold, body)
        assert (status, told.instance, told.namespaces, told.leads, told.agent_key) == (
            200,
            "op-1",
            ("demo",),
            False,
            False,
        )

    at_the_door(play)


def test_an_answer_is_refused_while_too_many_are_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(door: Door) -> None:
        monkeypatch.setattr(routes, "MOST_AT_ONCE", 0)
        assert await door.ask(TASKS) == (503, b"too many responses are being sent: try again in some seconds")

    at_the_door(play)


def test_what_is_not_known_is_not_found_and_what_was_not_looked_at_yet_is_asked_for_later() -> None:
    async def play(door: Door) -> None:
        status, body = await door.ask(tasks_path(NAMESPACE, "other"))
        assert (status, body) == (
            404,
            f"StreamApp {NAMESPACE}/other: this operator does not know it; check which namespaces it watches".encode(),
        )
        await door.bench.restart()
        async with a_door(door.bench) as anew:
            assert (await anew.ask(TASKS))[0] == 404
            anew.bench.applications.remember_resource(KEY, {})
            assert (await anew.ask(TASKS))[0] == 503
            await anew.bench.make_pass()
            assert (await anew.ask(TASKS))[0] == 200
        assert (await door.ask("/v1/apps/demo/counter/secrets"))[0] == 404

    at_the_door(play)


def test_an_application_that_was_made_anew_under_its_name_gets_no_answer_of_the_old_one() -> None:
    async def play(door: Door) -> None:
        await door.tasks()
        door.bench.server.remove("streamapps", NAMESPACE, NAME)
        await door.bench.make_pass()
        assert (await door.ask(TASKS))[0] == 404
        door.bench.desired(4)
        await door.bench.make_pass()
        told = await door.findings()
        assert told.told_at is not None
        assert told.told_at - told.as_of < timedelta(seconds=1)

    at_the_door(play)


def test_how_the_last_pass_failed_is_found_until_one_succeeds() -> None:
    async def play(door: Door) -> None:
        server = door.bench.server
        assert not {"PassFailed", "OperatorRightMissing"} & set(await door.found())
        server.refuse = lambda request: (500, "etcd is slow") if "/pods" in request.path else None
        assert not await door.bench.make_pass()
        assert "etcd is slow" in (await door.found())["PassFailed"]
        server.refuse = lambda request: (403, "may not list pods") if "/pods" in request.path else None
        assert not await door.bench.make_pass()
        found = await door.found()
        assert "may not list pods" in found["OperatorRightMissing"]
        assert "PassFailed" not in found
        server.refuse = lambda _: None
        assert await door.bench.make_pass()
        assert not {"PassFailed", "OperatorRightMissing"} & set(await door.found())

    at_the_door(play)


def test_what_the_template_and_the_group_say_is_found() -> None:
    async def play(door: Door) -> None:
        found = await door.found()
        assert set(found) == {"NoReadinessProbe"}
        container = {"name": "app", "image": "app:1", "readinessProbe": {"httpGet": {"path": "/", "port": 1}}}
        door.bench.desired(4, template={"spec": {"containers": [container], "terminationGracePeriodSeconds": 5}})
        await door.bench.make_pass()
        assert set(await door.found()) == {"GracePeriodShort"}
        told = await door.findings()
        (one,) = (one for one in told.findings if one.code == "GracePeriodShort")
        assert (one.severity, one.title, one.fix) == (
            "warning",
            Diagnosis.GracePeriodShort.title,
            Diagnosis.GracePeriodShort.fix,
        )

    at_the_door(play)


def test_without_a_key_for_agents_that_is_what_is_found() -> None:
    async def play(door: Door) -> None:
        door.bench.desired(4, agent={"enabled": True})
        await door.bench.make_pass()
        assert "STREAMAPP_AGENT_KEY_FILE" in (await door.found())["AgentKeyMissing"]

    at_the_door(play)


def test_no_password_is_in_any_answer() -> None:
    async def play(door: Door) -> None:
        (cluster_access,) = {cluster_access.properties for cluster_access in door.bench.wirings}
        assert ("sasl.jaas.config", "hunter2") in cluster_access
        for path in (TASKS, FINDINGS, "/v1/operator"):
            assert b"hunter2" not in (await door.ask(path))[1]

    async def run() -> None:
        async with a_bench(4) as bench:
            secret = {
                "metadata": {"namespace": NAMESPACE, "name": "props"},
                "data": {"sasl.jaas.config": "aHVudGVyMg=="},
            }
            bench.server.put("secrets", secret)
            bench.desired(4, kafka={"bootstrapServers": "kafka:9092", "configSecretRefs": [{"name": "props"}]})
            bench.wirings.clear()
            await bench.restart()
            await bench.make_pass()
            async with a_door(bench) as door:
                await play(door)

    asyncio.run(run())


def test_an_answer_is_json_without_what_is_not_known() -> None:
    async def play(door: Door) -> None:
        _, body = await door.ask(TASKS)
        document = json.loads(body)
        assert document["version"] == 1
        assert None not in document.values()
        assert set(document["tasks"][0]) == {"task", "stateful", "owner", "state", "copies", "coveredOn", "records"}

    at_the_door(play)
