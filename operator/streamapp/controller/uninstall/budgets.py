"""Opens the PodDisruptionBudgets: no leader would ever open one that stays closed, and node drains would not end."""

import sys

from streamapp.api.names import LEASE
from streamapp.controller.settings import Settings
from streamapp.controller.uninstall.installation import made_by_us
from streamapp.core.facts.workload import Budget
from streamapp.kube.client.client import FIELD_MANAGER, Json, KubeClient
from streamapp.kube.client.errors import KubeError, NotFoundError
from streamapp.kube.client.kinds import BUDGETS
from streamapp.kube.objects import from_json
from streamapp.kube.objects.from_json import BudgetFacts

OPEN: Json = {
    "metadata": {"annotations": {LEASE: None}},
    "spec": {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchExpressions": None},
    },
}


async def closed_budgets(client: KubeClient, settings: Settings) -> list[Json]:
    """List the budgets of this installation that allow less than one eviction at a time, or follow coverage."""
    budgets = await made_by_us(client, settings, BUDGETS)
    return [live for live in budgets if from_json.budget(live) != BudgetFacts(Budget.OPEN)]


async def open_budgets(client: KubeClient, budgets: list[Json]) -> bool:
    """Open these budgets; whether each one that is still there is open."""
    are_open = True
    for live in budgets:
        namespace, name = live["metadata"]["namespace"], live["metadata"]["name"]
        try:
            await client.merge(BUDGETS, namespace, name, OPEN, manager=FIELD_MANAGER)
        except NotFoundError:
            continue
        except KubeError as error:
            are_open = False
            sys.stderr.write(f"The budget {namespace}/{name} is not open: {error}\n")
        else:
            sys.stdout.write(f"The budget {namespace}/{name} is open.\n")
    return are_open
