"""`python -m streamapp open-budgets`: every closed budget is opened, and no leader closes one again."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.aio.client.configuration import Configuration

from streamapp.api.objects import manifests
from streamapp.controller import uninstall
from streamapp.controller.settings import Settings
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

            monkeypatch.setattr(uninstall, "own_configuration", own)
            return await uninstall._open_all(
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


def test_without_a_closed_budget_the_leader_stays() -> None:
    server = ApiServer(lambda: NOW)
    server.put("leases", LEASE)
    put(server, "words")
    put(server, "others", "another-installation", allows=Budget.CLOSED)
    with pytest.MonkeyPatch.context() as patch:
        assert opened(server, patch, STREAMAPP_LEASE_NAMESPACE="system") == 0
    assert server.writes == []


def test_without_a_lease_nothing_is_opened_and_the_command_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ApiServer(lambda: NOW)
    put(server, "words", allows=Budget.CLOSED)
    assert (opened(server, monkeypatch), facts(server, "words")) == (1, BudgetFacts(Budget.CLOSED))
    assert "Scale its Deployment to 0 replicas" in capsys.readouterr().err
