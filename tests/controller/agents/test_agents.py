"""Agents in the passes: who is asked when, what is remembered, what is told, and what a removal asks once more."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.typing import EventDict

from streamapp.controller.agents.keys import KeyFile
from streamapp.controller.agents.topology import topology_in_force
from streamapp.controller.reconcile.gather import Gathered, ReplicaFacts
from streamapp.core.actions.decision import Announce, CapHeartbeats, RestartPod
from streamapp.core.facts.agent_reports import AgentReport, AgentSilent, Rebalance
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.reasons import Reason
from streamapp.kube.client.errors import ConflictError
from streamapp.wire.agent_token import token
from tests.controller.doubles.bench import KEY, NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.support import example

ON = {"enabled": True}
SECRET = b"k" * 64
TEXT = """Topologies:
   Sub-topology: 0
    Source: S (topics: [lines])
      --> P
    Processor: P (stores: [counts])
      --> none
      <-- S
"""
OTHER = TEXT.replace("counts", "sums")
MORE = f"{TEXT}{TEXT.split(maxsplit=1)[1].replace('0', '1').replace('lines', 'words').replace('counts', 'sums')}"


@pytest.fixture
def key_file(tmp_path: Path) -> KeyFile:
    path = tmp_path / "keys"
    path.write_bytes(SECRET)
    return KeyFile(str(path))


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]], keys: KeyFile, agent: Any = ON, **spec: Any) -> None:
    """Play something on a bench of three pods whose operator has keys, with agents."""

    async def run() -> None:
        async with a_bench(3) as bench:
            bench.keys = keys
            await bench.restart()
            bench.desired(3, agent=agent, **spec)
            for _ in range(4):
                bench.clock.move(2)
                await bench.make_pass()
            await play(bench)
            assert bench.wrongs == []
            assert bench.group.wrongs == []

    asyncio.run(run())


async def gathered(bench: Bench) -> Gathered:
    facts = await bench.gatherer.read_replicas(KEY)
    assert isinstance(facts, ReplicaFacts)
    return await bench.gatherer.gather(facts)


def counted(bench: Bench, name: str) -> dict[str, float]:
    """A counter, by result."""
    families = [family for family in bench.metrics.registry.collect() if family.name == name]
    samples = [one for family in families for one in family.samples if one.name.endswith("_total")]
    return {one.labels["result"]: one.value for one in samples}


def test_nobody_is_asked_where_there_is_no_agent(key_file: KeyFile) -> None:
    async def play(bench: Bench) -> None:
        assert bench.agents.asked == []
        assert (await gathered(bench)).snapshot.agents is None

    on_a_bench(play, key_file, {"enabled": False})


def test_all_are_asked_in_each_pass_and_what_they_said_is_remembered_for_a_while(key_file: KeyFile) -> None:
    async def play(bench: Bench) -> None:
        for _ in range(20):
            bench.clock.move(2)
            await bench.make_pass()
        before = len(bench.agents.asked)
        seen = (await gathered(bench)).snapshot.agents
        assert bench.agents.asked[before:] == [[0, 1, 2]]
        assert bench.agents.tokens == {token(SECRET, bench.group.app_uid)}
        assert seen is not None
        now = bench.clock.now()
        for ordinal in range(3):
            words = [word for word in seen.words[Ordinal(ordinal)] if isinstance(word, AgentReport)]
            assert [word.sequence for word in words] == [before + 1 - number for number in range(len(words))]
            assert words[0].process_id == seeded_process_id(bench.group.app_uid, Ordinal(ordinal))
            assert timedelta(seconds=10) < now - words[-1].as_of < timedelta(seconds=20)
        assert counted(bench, "streamapp_agent_requests") == {"success": 3.0 * len(bench.agents.asked)}

    on_a_bench(play, key_file)


def test_ends_are_read_after_the_agents_while_somebody_waits_for_them(key_file: KeyFile) -> None:
    async def play(bench: Bench) -> None:
        for _ in range(20):
            bench.clock.move(10)
            await bench.make_pass()
        at_rest = (await gathered(bench)).snapshot.agents
        bench.group.lag = 500_000
        bench.desired(2)
        for _ in range(6):
            bench.clock.move(2)
            await bench.make_pass()
        seen = (await gathered(bench)).snapshot.agents
        assert at_rest is not None
        assert seen is not None
        newest = seen.latest(Ordinal(0))
        assert isinstance(newest, AgentReport)
        assert seen.ends[0].began_at > newest.as_of
        assert seen.ends[0].began_at - newest.as_of < timedelta(seconds=1)
        assert all(bench.clock.now() - one.began_at > timedelta(minutes=1) for one in at_rest.ends[:1])

    on_a_bench(play, key_file)


def test_each_pod_is_asked_at_the_port_that_it_was_made_with(key_file: KeyFile) -> None:
    async def play(bench: Bench) -> None:
        old = {"name": "streamapp-agent", "containerPort": 7711}
        for number in range(2):
            pod = bench.server.get("pods", NAMESPACE, f"counter-{number}")
            assert pod is not None
            pod["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": 8080}, old]
            bench.server.put("pods", pod)
        bench.desired(3, agent={"enabled": True, "port": 9000})
        await bench.make_pass()
        assert bench.agents.ports == {0: 7711, 1: 7711, 2: 9000}

    on_a_bench(play, key_file)


@pytest.mark.guarantee(3)
def test_growth_asks_no_agent(key_file: KeyFile) -> None:
    async def play(bench: Bench) -> None:
        bench.desired(5)
        before = len(bench.agents.asked)
        await bench.make_pass()
        assert (bench.granted(), len(bench.agents.asked)) == (5, before)
        await bench.make_pass()
        assert bench.agents.asked[before:] == [[0, 1, 2, 3, 4]]

    on_a_bench(play, key_file)


def test_a_silent_agent_is_told_once_and_again_when_it_speaks(key_file: KeyFile, log_lines: list[EventDict]) -> None:
    async def play(bench: Bench) -> None:
        bench.agents.silent = {1}
        log_lines.clear()
        for _ in range(3):
            await bench.make_pass()
        seen = (await gathered(bench)).snapshot.agents
        bench.agents.silent = set()
        await bench.make_pass()
        assert seen is not None
        word = seen.latest(Ordinal(1))
        assert isinstance(word, AgentSilent)
        assert "agent of pod counter-1 at 10.1.0." in word.why
        assert [line["event"] for line in log_lines if "agent" in line["event"]] == [
            "agent unreachable",
            "agent reachable again",
        ]
        members = bench.status()["members"]
        assert [member["agent"] for member in members] == ["Active", "Active", "Active"]
        assert counted(bench, "streamapp_agent_requests")["error"] == 4

    on_a_bench(play, key_file)


def test_without_a_key_every_agent_is_silent_and_nothing_else_is_held() -> None:
    async def play(bench: Bench) -> None:
        assert bench.agents.asked == []
        seen = (await gathered(bench)).snapshot.agents
        assert seen is not None
        why = "the operator has no key for agents: STREAMAPP_AGENT_KEY_FILE is not set; see docs/agents.md (Keys)"
        assert (seen.latest(Ordinal(2)), seen.no_key) == (AgentSilent(Ordinal(2), why), why)
        (learners,) = [one for one in bench.status()["conditions"] if one["type"] == "LearnersAvailable"]
        assert "STREAMAPP_AGENT_KEY_FILE is not set" in learners["message"]
        names = [one["name"] for one in bench.statefulset()["spec"]["template"]["spec"]["initContainers"]]
        assert names == ["streamapp-seed"]
        bench.desired(2)
        await bench.run(lambda: bench.is_settled(2), 600)

    on_a_bench(play, KeyFile(""))


def remove(keys: KeyFile) -> None:
    Path(keys.path).unlink()


def test_the_template_gets_the_agent_and_keeps_it_when_the_key_is_lost(key_file: KeyFile) -> None:
    async def play(bench: Bench) -> None:
        template = bench.statefulset()["spec"]["template"]["spec"]
        assert [one["image"] for one in template["initContainers"]] == ["agent:test", "seed:test"]
        remove(key_file)
        writes = len(bench.server.writes)
        for _ in range(5):
            bench.clock.move(2)
            await bench.make_pass()
        assert bench.statefulset()["spec"]["template"]["spec"] == template
        assert [write.plural for write in bench.server.writes[writes:] if write.plural == "statefulsets"] == []

    on_a_bench(play, key_file)


def an_announcement(bench: Bench, *, ttl: float = 20) -> Announce:
    return Announce(
        to=(Ordinal(0), Ordinal(2)),
        process_ids=(seeded_process_id(bench.group.app_uid, Ordinal(2)),),
        epoch=Epoch(0, 7),
        rebalance=Rebalance.EAGER,
        ttl=timedelta(seconds=ttl),
        reason=Reason.HoldBegan,
    )


def test_an_announcement_reaches_whom_it_is_for_and_a_failure_does_not_end_the_pass(
    key_file: KeyFile, log_lines: list[EventDict]
) -> None:
    async def play(bench: Bench) -> None:
        bench.agents.deaf = {2}
        step = an_announcement(bench)
        log_lines.clear()
        now = await gathered(bench)
        for _ in range(3):
            await bench.applier.apply(now, (step,))
        bench.agents.deaf = set()
        await bench.applier.apply(now, (step,))
        assert [to for to, _ in bench.agents.told] == [[0, 2]] * 4
        assert json.loads(bench.agents.told[0][1]) == {
            "epoch": {"lease": 0, "counter": 7},
            "ttlSeconds": 20,
            "processIds": [str(step.process_ids[0])],
            "rebalance": "Eager",
        }
        assert counted(bench, "streamapp_agent_announcements") == {"success": 5, "error": 3}
        lines = [line for line in log_lines if line["event"] == "announced"]
        assert [(line["log_level"], len(line["failures"])) for line in lines] == [("warning", 1), ("info", 0)]

    on_a_bench(play, key_file)


def test_a_heartbeat_cap_reaches_whom_it_is_for_and_a_failure_does_not_end_the_pass(
    key_file: KeyFile, log_lines: list[EventDict]
) -> None:
    async def play(bench: Bench) -> None:
        bench.agents.deaf = {2}
        step = CapHeartbeats(
            to=(Ordinal(0), Ordinal(2)),
            cap=timedelta(milliseconds=300),
            ttl=timedelta(minutes=1),
            reason=Reason.Covered,
        )
        now = await gathered(bench)
        log_lines.clear()
        await bench.applier.apply(now, (step,))
        assert [(to, json.loads(body)) for to, body in bench.agents.capped] == [
            ([0, 2], {"capMillis": 300, "ttlSeconds": 60})
        ]
        (line,) = [line for line in log_lines if line["event"] == "heartbeats capped"]
        assert (line["log_level"], line["failures"]) == ("warning", ["no answer"])

    on_a_bench(play, key_file)


def a_restart(now: Gathered) -> RestartPod:
    pod = now.snapshot.workload.pods[2]
    return RestartPod(ordinal=pod.ordinal, pod_uid=pod.uid, judged_at=now.snapshot.now, reason=Reason.RestartCovered)


def spoil_nothing(_: Bench) -> None:
    """Leave all as it is."""


def spoil_tasks(bench: Bench) -> None:
    bench.agents.restoring = {1}


def spoil_silence(bench: Bench) -> None:
    bench.agents.silent = {0}


def spoil_assignor(bench: Bench) -> None:
    bench.agents.aside = {2}


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (spoil_nothing, ""),
        (spoil_tasks, "tasks of ordinal 1 have changed since"),
        (spoil_silence, "ordinal 0 is silent: agent of pod counter-0 at 10.1.0."),
        (spoil_assignor, "tasks of ordinal 2 have changed since"),
    ],
)
def test_a_pod_is_taken_only_if_the_agents_still_say_the_same(
    key_file: KeyFile, spoil: Callable[[Bench], None], says: str
) -> None:
    async def play(bench: Bench) -> None:
        now = await gathered(bench)
        spoil(bench)
        asked = len(bench.agents.asked)
        if says:
            with pytest.raises(ConflictError, match=says):
                await bench.applier.apply(now, (a_restart(now),))
        else:
            await bench.applier.apply(now, (a_restart(now),))
        assert bench.agents.asked[asked:] == [[0, 1, 2]]
        assert (bench.server.get("pods", NAMESPACE, "counter-2") is None) is not bool(says)

    on_a_bench(play, key_file)


def test_where_one_agent_is_silent_a_removal_rests_on_the_group_alone(key_file: KeyFile) -> None:
    async def play(bench: Bench) -> None:
        bench.agents.silent = {1}
        bench.clock.move(30)
        now = await gathered(bench)
        asked = len(bench.agents.asked)
        await bench.applier.apply(now, (a_restart(now),))
        assert len(bench.agents.asked) == asked

    on_a_bench(play, key_file)


@pytest.mark.guarantee(1)
def test_pods_are_emptied_by_learners_on_demand_and_go_together(key_file: KeyFile) -> None:
    async def play(bench: Bench) -> None:
        bench.group.assignor = bench.agents.assign
        bench.group.lag = 500_000
        bench.desired(1)
        for _ in range(40):
            bench.clock.move(2)
            await bench.make_pass()
        assert bench.granted() == 3
        leaving = {str(seeded_process_id(bench.group.app_uid, Ordinal(number))) for number in (1, 2)}
        assert set(json.loads(bench.agents.told[-1][1])["processIds"]) == leaving
        bench.group.lag = 0
        await bench.run(lambda: bench.granted() == 1, 300)
        assert bench.pods.most_at_once == 2
        await bench.run(lambda: bench.is_settled(1), 300)
        assert json.loads(bench.agents.told[-1][1])["processIds"] == []
        assert bench.status()["learnerSource"] == "OnDemand"

    on_a_bench(play, key_file, learners={"source": "OnDemand"})


def texts(*by_ordinal: str | None) -> dict[int, str]:
    return {number: text for number, text in enumerate(by_ordinal) if text is not None}


@pytest.mark.parametrize(
    ("told", "wired"),
    [
        (texts(TEXT, TEXT, TEXT), TEXT),
        (texts(TEXT, TEXT), ""),
        (texts(TEXT, TEXT, OTHER), ""),
        (texts(TEXT, TEXT, MORE), MORE),
        (texts(OTHER, TEXT, MORE), ""),
        (texts("nonsense", "nonsense", "nonsense"), ""),
    ],
)
def test_the_text_of_the_topology_is_what_all_agents_say_or_one_that_has_all_of_it(
    key_file: KeyFile, told: dict[int, str], wired: str
) -> None:
    async def play(bench: Bench) -> None:
        bench.agents.topologies = told
        for _ in range(3):
            await bench.make_pass()
        assert bench.wirings[-1].topology == wired
        # While pods run different ones, the last that all had stays.
        bench.agents.topologies = texts(OTHER, TEXT, TEXT)
        for _ in range(3):
            await bench.make_pass()
        assert bench.wirings[-1].topology == wired

    on_a_bench(play, key_file)


@pytest.mark.parametrize(
    ("before", "reported", "revisions", "in_force"),
    [
        (TEXT, MORE, "aab", MORE),
        (MORE, TEXT, "aab", MORE),
        (MORE, TEXT, "aaa", TEXT),
        (MORE, "", "aab", MORE),
        (OTHER, TEXT, "aab", TEXT),
        ("", TEXT, "aab", TEXT),
    ],
)
def test_a_larger_text_stays_while_a_template_changes_though_its_pod_does_not_run(
    before: str, reported: str, revisions: str, in_force: str
) -> None:
    pods = [replace(example.pod(number), revision=one) for number, one in enumerate(revisions)]
    assert topology_in_force(before, reported, pods) == in_force


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (texts(TEXT, TEXT, TEXT), None),
        (texts(OTHER, OTHER, TEXT), None),
        (texts(OTHER, OTHER), None),
        (
            texts(OTHER, OTHER, OTHER),
            "spec.topology is not what the agents say that runs (sub-topology 0 differs); renew it, or leave it out: "
            "then the agents' text is used",
        ),
    ],
)
@pytest.mark.guarantee(2)
def test_a_text_in_the_spec_that_all_agents_contradict_is_not_gone_by(
    key_file: KeyFile, told: dict[int, str], says: str | None
) -> None:
    async def play(bench: Bench) -> None:
        bench.agents.topologies = told
        for _ in range(3):
            bench.clock.move(11)
            await bench.make_pass()
        task_set = (await gathered(bench)).snapshot.task_set
        assert bench.wirings[-1].topology == TEXT
        assert isinstance(task_set, TaskSet) if says is None else task_set == TopologyUnknown(says)

    on_a_bench(play, key_file, topology=TEXT)


@pytest.mark.guarantee(2)
def test_tasks_whose_changelogs_no_broker_shows_are_unknown_while_a_member_tells_of_their_state(
    key_file: KeyFile,
) -> None:
    async def play(bench: Bench) -> None:
        await pass_for(bench, 20)
        application = (await gathered(bench)).application
        application.memory.task_set = example.stateless_task_set()
        task_set = (await gathered(bench)).snapshot.task_set
        assert isinstance(task_set, TopologyUnknown)
        assert "and no changelog of it is seen" in task_set.reason

    on_a_bench(play, key_file)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("silent", [False, True])
def test_a_pod_whose_restart_is_asked_for_is_drained_and_stays_while_its_agent_is_silent(
    key_file: KeyFile, silent: bool
) -> None:
    async def play(bench: Bench) -> None:
        bench.group.assignor = bench.agents.assign
        await pass_for(bench, 20)
        pod = bench.server.get("pods", NAMESPACE, f"{NAME}-1")
        app = bench.server.get("streamapps", NAMESPACE, NAME)
        assert pod is not None
        assert app is not None
        annotations = {"streamapp.dev/restart": pod["metadata"]["uid"]}
        bench.server.put("streamapps", {**app, "metadata": {**app["metadata"], "annotations": annotations}})
        bench.agents.silent = {1} if silent else set()
        await pass_for(bench, 60)
        deletions = [write for write in bench.server.writes if (write.plural, write.method) == ("pods", "DELETE")]
        assert len(deletions) == (0 if silent else 1)
        if silent:
            assert bench.condition("Reconciling") == ("True", "AgentSilent")

    on_a_bench(play, key_file, learners={"source": "OnDemand"})


async def pass_for(bench: Bench, seconds: int) -> None:
    """Let time pass."""
    for _ in range(0, seconds, 2):
        bench.clock.move(2)
        await bench.make_pass()
