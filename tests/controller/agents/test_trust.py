"""Whom the operator trusts as an agent: which Secret counts for a pod, when it is read, and what a rotation does."""

import asyncio
import base64
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from streamapp.controller.agents.keys import KeyFile
from streamapp.controller.agents.trust import DOUBT_SECONDS, MOST_SECRETS, OVERLAP_SECONDS, READ_SECONDS, AgentTrust
from streamapp.core.facts.agent_reports import AgentSilent
from streamapp.core.facts.ids import Ordinal
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.kinds import Key
from tests.brokers.certificates import Authority
from tests.controller.agents.test_agents import gathered, key_file, on_a_bench
from tests.controller.doubles.bench import Bench, Clock
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.kube.api_server import ApiServer

__all__ = ["key_file"]

FIRST, SECOND = Authority("first"), Authority("second")
KEY = Key(NAMESPACE, "counter")
WITH_TLS = {"enabled": True, "tls": {"secretRef": {"name": "agents"}}}


class Trusting:
    """A store of trust on a fake API server, in time that the test moves."""

    def __init__(self, server: ApiServer, client: KubeClient, clock: Clock) -> None:
        self.server, self.client, self.clock = server, client, clock
        self.trust = AgentTrust(clock.monotonic)
        self.reads = 0
        self.status = 0
        """Of the API server's refusals; 0: it answers."""
        server.refuse = self._refuse

    def _refuse(self, request: web.Request) -> tuple[int, str] | None:
        self.reads += "/secrets/" in request.path
        return (self.status, "injected") if self.status else None

    def put(self, authorities: str, name: str = "agents") -> None:
        put_secret(self.server, authorities, name)

    async def refresh(
        self, after: float = 0, names: tuple[str, ...] = ("agents",), doubtful: tuple[str, ...] = ()
    ) -> None:
        self.clock.move(after)
        await self.trust.refresh(self.client, KEY, names, doubtful)

    def whom(self, name: str = "agents") -> set[str] | str:
        """The names of the authorities that are trusted, or why there are none."""
        found = self.trust.of(KEY, name)
        return {_name(each) for each in found.get_ca_certs()} if hasattr(found, "get_ca_certs") else found.why


def _name(certificate: Any) -> str:
    return str(certificate["subject"][0][0][1])


def put_secret(server: ApiServer, authorities: str, name: str = "agents") -> None:
    """Write the Secret as cert-manager does."""
    data = {"ca.crt": authorities, "tls.crt": "certificate", "tls.key": "key"}
    coded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    server.put("secrets", {"metadata": {"namespace": NAMESPACE, "name": name}, "data": coded})


def play(story: Callable[[Trusting], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        clock = Clock()
        server = ApiServer(clock.now)
        async with server.serving() as url:
            client = KubeClient(Configuration(host=url), deadline_seconds=5)
            try:
                await story(Trusting(server, client, clock))
            finally:
                await client.close()

    asyncio.run(run())


def test_a_secret_is_read_once_a_minute_and_sooner_while_an_agent_is_in_doubt() -> None:
    async def story(store: Trusting) -> None:
        store.put(FIRST.pem)
        await store.refresh()
        await store.refresh(READ_SECONDS - 1)
        assert (store.whom(), store.reads) == ({"first"}, 1)
        await store.refresh(1)
        assert store.reads == 2
        await store.refresh(DOUBT_SECONDS, doubtful=("agents",))
        assert store.reads == 3

    play(story)


def test_authorities_that_were_replaced_are_trusted_until_the_pods_have_the_new_files() -> None:
    async def story(store: Trusting) -> None:
        store.put(FIRST.pem)
        await store.refresh()
        store.put(SECOND.pem)
        await store.refresh(READ_SECONDS)
        assert store.whom() == {"first", "second"}
        for _ in range(3):
            await store.refresh(READ_SECONDS)
        assert store.whom() == {"first", "second"}
        await store.refresh(OVERLAP_SECONDS - 3 * READ_SECONDS)
        assert store.whom() == {"second"}

    play(story)


def test_a_read_that_failed_keeps_the_trust_and_an_answer_ends_it() -> None:
    async def story(store: Trusting) -> None:
        store.put(FIRST.pem)
        await store.refresh()
        for status in (503, 429, 401):
            store.status = status
            await store.refresh(READ_SECONDS)
            assert store.whom() == {"first"}
        store.status = 403
        await store.refresh(READ_SECONDS)
        why = store.whom()
        assert isinstance(why, str)
        assert why == (
            f"secret agents: GET /api/v1/namespaces/{NAMESPACE}/secrets/agents: injected (compare the operator's "
            "ClusterRole with that of its release); create it, and name it in the chart's value `agent.tlsSecrets`; "
            "see docs/agents.md (TLS)"
        )
        store.status = 0
        await store.refresh(DOUBT_SECONDS)
        assert store.whom() == {"first"}

    play(story)


@pytest.mark.parametrize(
    ("authorities", "says"),
    [
        ("", "secret agents: it has no `ca.crt`; see docs/agents.md (TLS)"),
        ("no certificate", "secret agents: `ca.crt` cannot be used"),
        ("x" * 70_000, "secret agents: `ca.crt` is longer than 65536 bytes; leave only authorities"),
    ],
)
def test_a_secret_without_usable_authorities_says_so(authorities: str, says: str) -> None:
    async def story(store: Trusting) -> None:
        store.put(authorities)
        await store.refresh()
        why = store.whom()
        assert isinstance(why, str)
        assert why.startswith(says)

    play(story)


def test_only_few_secrets_of_one_application_are_read_and_others_are_refused() -> None:
    async def story(store: Trusting) -> None:
        names = tuple(f"s{number}" for number in range(MOST_SECRETS + 1))
        for name in names:
            store.put(FIRST.pem, name)
        await store.refresh(names=(*names, ""))
        assert store.reads == MOST_SECRETS
        assert store.whom(names[-1]) == f"secret {names[-1]}: it was not read; see docs/agents.md (TLS)"
        assert store.whom("") == "secret of its volume: it was not read; see docs/agents.md (TLS)"

    play(story)


def test_no_key_of_an_agent_is_kept() -> None:
    async def story(store: Trusting) -> None:
        store.put(FIRST.pem)
        await store.refresh()
        (kept,) = store.trust._known[KEY].values()
        assert sorted(kept.read.content.data) == ["ca.crt"]
        store.trust.forget(KEY)
        assert isinstance(store.whom(), str)

    play(story)


def test_each_pod_is_asked_in_the_way_that_it_was_made_for(key_file: KeyFile) -> None:
    async def story(bench: Bench) -> None:
        put_secret(bench.server, FIRST.pem)
        bench.desired(3, agent=WITH_TLS)
        await bench.make_pass()
        assert bench.agents.names[-1] == {0: None, 1: None, 2: None}
        bench.pods.replace(1)
        bench.clock.move(2)
        await bench.make_pass()
        assert bench.agents.names[-1] == {0: None, 1: f"counter-1.counter.{NAMESPACE}.svc", 2: None}
        # Switched off again: the pod that has the certificate keeps it until its restart.
        bench.desired(3, agent={"enabled": True})
        await bench.make_pass()
        assert bench.agents.names[-1][1] == f"counter-1.counter.{NAMESPACE}.svc"

    on_a_bench(story, key_file)


def test_a_pod_whose_secret_is_missing_is_never_asked_in_the_clear_and_comes_back_with_it(key_file: KeyFile) -> None:
    async def story(bench: Bench) -> None:
        bench.desired(3, agent=WITH_TLS)
        await bench.make_pass()
        bench.pods.replace(1)
        bench.clock.move(2)
        await bench.make_pass()
        assert sorted(bench.agents.names[-1]) == [0, 2]
        seen = (await gathered(bench)).snapshot.agents
        assert seen is not None
        word = seen.latest(Ordinal(1))
        assert isinstance(word, AgentSilent)
        assert word.is_untrusted
        assert word.why.startswith("agent of pod counter-1: secret agents: ")
        (learners,) = [one for one in bench.status()["conditions"] if one["type"] == "LearnersAvailable"]
        assert "AgentUntrusted" in f"{learners['reason']} {learners['message']}"
        assert bench.status()["members"][1]["agent"] == "Unreachable"
        put_secret(bench.server, FIRST.pem)
        bench.clock.move(DOUBT_SECONDS)
        await bench.make_pass()
        assert sorted(bench.agents.names[-1]) == [0, 1, 2]

    on_a_bench(story, key_file)
