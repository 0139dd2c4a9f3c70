"""`python -m streamapp prepare-uninstall`: budgets are opened, raised standbys put back, and no leader undoes it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.aio.client.configuration import Configuration

from streamapp.api.objects import manifests
from streamapp.controller.settings import Settings
from streamapp.controller.uninstall import command
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Budget
from streamapp.kube.objects.from_json import BudgetFacts, budget
from tests.kube.api_server import ApiServer
from tests.streamapps import a_streamapp
from tests.support.example import NOW

Json = dict[str, Any]
HERE = manifests.Installation(name="streamapp-operator", seed_image="seed:1", agent_image="agent:1")
CLOSED = {
    "a step was open": {"allows": Budget.CLOSED},
    "it follows coverage": {"allows": Budget.CLOSED, "lease": 3},
    "one pod was left out": {"allows": Budget.OPEN_FOR_ONE, "evictable": Ordinal(2), "lease": 3},
    "it follows coverage and is open": {"allows": Budget.OPEN, "lease": 3},
}
LEASE = {
    "metadata": {"namespace": "system", "name": "streamapp-operator"},
    "spec": {"holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 3},
}


def put(server: ApiServer, name: str, installation: str = HERE.name, **how: Any) -> Json:
    made = manifests.disruption_budget(a_streamapp(name=name), replace(HERE, name=installation), **how)
    return server.put("poddisruptionbudgets", made)


def opened(server: ApiServer, monkeypatch: pytest.MonkeyPatch, **settings: str) -> int:
    """Run the command before this server, with a short pause."""

    async def run() -> int:
        async with server.serving() as url:

            async def own() -> Configuration:
                return Configuration(host=url)

            monkeypatch.setattr(command, "own_configuration", own)
            return await command._prepare(
                Settings.from_environment({"STREAMAPP_LEASE_RENEW_SECONDS": "0.01", **settings})
            )

    return asyncio.run(run())


def facts(server: ApiServer, name: str) -> BudgetFacts:
    return budget(server.get("poddisruptionbudgets", a_streamapp().metadata.namespace, name))


@pytest.mark.parametrize("how", CLOSED.values(), ids=CLOSED.keys())
def test_each_budget_is_opened_and_the_lease_is_taken_first(how: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ApiServer(lambda: NOW)
    server.put("leases", LEASE)
    put(server, "words", **how)
    code = opened(server, monkeypatch, STREAMAPP_LEASE_NAMESPACE="system")
    lease = server.get("leases", "system", "streamapp-operator")
    assert lease is not None
    assert (code, facts(server, "words")) == (0, BudgetFacts(Budget.OPEN))
    assert (lease["spec"]["holderIdentity"][:9], lease["spec"]["leaseTransitions"]) == ("uninstall", 5)
    assert lease["spec"]["leaseDurationSeconds"] == 15
    writes = [write.plural for write in server.writes]
    assert writes.index("leases") < writes.index("poddisruptionbudgets")


def test_nothing_of_another_installation_is_opened() -> None:
    server = ApiServer(lambda: NOW)
    server.put("leases", LEASE)
    put(server, "words")
    put(server, "others", "another-installation", allows=Budget.CLOSED)
    with pytest.MonkeyPatch.context() as patch:
        assert opened(server, patch, STREAMAPP_LEASE_NAMESPACE="system") == 0
    assert {write.plural for write in server.writes} == {"leases"}


@pytest.mark.guarantee(2)
def test_a_budget_that_the_leader_closes_after_the_first_look_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader goes on until it sees that the Lease is taken, or Helm has removed it."""
    server = ApiServer(lambda: NOW)
    server.put("leases", LEASE)
    put(server, "words")
    looks: list[str] = []

    def close_after_the_first_look(request: Any) -> None:
        is_taken = any(write.plural == "leases" for write in server.writes)
        if looks and not is_taken:
            put(server, "words", allows=Budget.CLOSED)
        looks.extend(["budgets"] if "poddisruptionbudgets" in request.path else [])

    monkeypatch.setattr(server, "refuse", close_after_the_first_look)
    assert opened(server, monkeypatch, STREAMAPP_LEASE_NAMESPACE="system") == 0
    assert (len(looks) > 0, facts(server, "words")) == (True, BudgetFacts(Budget.OPEN))


@pytest.mark.guarantee(2)
def test_it_fails_if_a_leader_came_back_meanwhile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job then runs again: the budget was closed once more."""
    server = ApiServer(lambda: NOW)
    server.put("leases", LEASE)
    put(server, "words", allows=Budget.CLOSED)

    def lead_again(write: Any) -> None:
        if write.plural == "poddisruptionbudgets":
            lease = server.get("leases", "system", "streamapp-operator")
            assert lease is not None
            transitions = lease["spec"]["leaseTransitions"] + 1
            server.put("leases", {**lease, "spec": {**lease["spec"], "leaseTransitions": transitions}})

    server.fault = lead_again
    assert opened(server, monkeypatch, STREAMAPP_LEASE_NAMESPACE="system") == 1
    assert "a replica of the operator took the Lease meanwhile" in capsys.readouterr().err
    server.fault = lambda _: None
    assert opened(server, monkeypatch, STREAMAPP_LEASE_NAMESPACE="system") == 0


def test_without_a_lease_nothing_is_opened_and_the_command_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ApiServer(lambda: NOW)
    put(server, "words", allows=Budget.CLOSED)
    assert (opened(server, monkeypatch), facts(server, "words")) == (1, BudgetFacts(Budget.CLOSED))
    assert "Scale its Deployment to 0 replicas" in capsys.readouterr().err


def test_without_a_lease_and_without_anything_to_do_it_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ApiServer(lambda: NOW)
    put(server, "words")
    assert (opened(server, monkeypatch), server.writes) == (0, [])
