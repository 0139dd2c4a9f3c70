"""`python -m streamapp open-budgets`: run before the operator is uninstalled, so that no budget stays closed for ever.

It takes the Lease first, and keeps it for longer than an uninstall lasts: a leader would close the budgets again. It
needs no right that the operator does not have. The chart runs it as a job.
"""

import asyncio
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from streamapp.api.names import LEASE, OPERATOR_LABEL
from streamapp.controller.settings import Settings
from streamapp.core.facts.workload import Budget
from streamapp.kube.client.client import FIELD_MANAGER, Json, KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError, NotFoundError
from streamapp.kube.client.kinds import BUDGETS, Key
from streamapp.kube.client.own_access import own_configuration
from streamapp.kube.objects import from_json, leases
from streamapp.kube.objects.from_json import BudgetFacts

HELD_SECONDS = 60.0
"""No replica takes the Lease for so long, while budgets are opened."""
LEFT_SECONDS = 15.0
"""Nor for so long afterwards, in which Helm removes the operator. Then whoever comes next judges the budgets anew."""
TRIES = 20
"""The leader renews the Lease every two seconds, so a write can be too late now and then."""
WITHOUT_A_LEASE = (
    "No budget is opened: there is no Lease to take from the operator, which would close them again. Scale its "
    "Deployment to 0 replicas, open the budgets by hand as docs/operations.md says, and uninstall with --no-hooks."
)
OPEN: Json = {
    "metadata": {"annotations": {LEASE: None}},
    "spec": {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchExpressions": None},
    },
}


def main(environment: Mapping[str, str]) -> int:
    """Open all budgets of this installation; give the exit code. Raises KubeError, InvalidSettingError."""
    return asyncio.run(_open_all(Settings.from_environment(environment)))


async def _open_all(settings: Settings) -> int:
    client = KubeClient(await own_configuration(), deadline_seconds=settings.request_deadline_seconds)
    try:
        if not await closed_budgets(client, settings):
            sys.stdout.write("No budget is closed.\n")
            return 0
        key = Key(settings.lease_namespace, settings.lease_name)
        if not settings.lease_namespace or not await take_lease(client, key, HELD_SECONDS):
            sys.stderr.write(f"{WITHOUT_A_LEASE}\n")
            return 1
        sys.stdout.write("The Lease is taken; waiting until the leader has ended.\n")
        await asyncio.sleep(settings.lease_renew_seconds)
        code = await open_budgets(client, await closed_budgets(client, settings))
        await take_lease(client, key, LEFT_SECONDS)
        return code
    finally:
        await client.close()


async def take_lease(client: KubeClient, key: Key, seconds: float) -> bool:
    """Take the Lease for so long from whoever holds it; whether there is one. ConflictError if it changed each time."""
    holder = f"uninstall_{secrets.token_hex(4)}"
    for attempt in range(TRIES):
        lease = await leases.find(client, key)
        if lease is None:
            return False
        now = leases.stamp(datetime.now(UTC))
        says = leases.LeaseSpec(
            holder=holder,
            seconds=seconds,
            transitions=lease.says.transitions + 1,
            acquired_at=now,
            renewed_at=now,
        )
        try:
            await leases.write(client, key, lease, says)
        except ConflictError:
            if attempt + 1 == TRIES:
                raise
        else:
            return True
    return False


async def closed_budgets(client: KubeClient, settings: Settings) -> list[Json]:
    """List the budgets of this installation that allow less than one eviction at a time, or follow coverage."""
    scopes = settings.namespaces or (None,)
    listed = [await client.list(BUDGETS, one, f"{OPERATOR_LABEL}={settings.installation}") for one in scopes]
    return [live for budgets in listed for live in budgets if from_json.budget(live) != BudgetFacts(Budget.OPEN)]


async def open_budgets(client: KubeClient, budgets: list[Json]) -> int:
    """Open these budgets; give the exit code: 1 if one could not be opened."""
    code = 0
    for live in budgets:
        namespace, name = live["metadata"]["namespace"], live["metadata"]["name"]
        try:
            await client.merge(BUDGETS, namespace, name, OPEN, manager=FIELD_MANAGER)
        except NotFoundError:
            continue
        except KubeError as error:
            code = 1
            sys.stderr.write(f"The budget {namespace}/{name} is not open: {error}\n")
        else:
            sys.stdout.write(f"The budget {namespace}/{name} is open.\n")
    return code
