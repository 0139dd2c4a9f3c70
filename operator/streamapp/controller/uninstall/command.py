"""`python -m streamapp prepare-uninstall`: open every budget, and put the standbys of groups back.

It takes the Lease first, and keeps it for longer than an uninstall lasts: a leader would do both the other way again.
"""

import asyncio
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from streamapp.controller.settings import Settings
from streamapp.controller.uninstall.budgets import closed_budgets, open_budgets
from streamapp.controller.uninstall.standbys import put_standbys_back, statefulsets_with_raise
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.client.kinds import Key
from streamapp.kube.client.own_access import own_configuration
from streamapp.kube.objects import leases

HELD_SECONDS = 90.0
"""No replica takes the Lease for so long, while the command works."""
LEFT_SECONDS = 15.0
"""Nor for so long afterwards, in which Helm removes the operator. Then whoever comes next judges everything anew."""
TRIES = 20
"""The leader renews the Lease every two seconds, so a write can be too late now and then."""
NOTHING_TO_DO = "No budget is closed, and no standbys are raised."
ANOTHER_LED = (
    "It lasted so long that a replica of the operator took the Lease meanwhile, and it can have closed budgets or "
    "raised standbys again. The job tries again."
)
WITHOUT_A_LEASE = (
    "Nothing is done: there is no Lease to take from the operator, which would close budgets and raise standbys again. "
    "Scale its Deployment to 0 replicas, do by hand what docs/operations.md says, and uninstall with --no-hooks."
)


def main(environment: Mapping[str, str]) -> int:
    """Prepare the uninstall of this installation; give the exit code. Raises KubeError, InvalidSettingError."""
    return asyncio.run(_prepare(Settings.from_environment(environment)))


async def _prepare(settings: Settings) -> int:
    client = KubeClient(await own_configuration(), deadline_seconds=settings.request_deadline_seconds)
    try:
        key = Key(settings.lease_namespace, settings.lease_name)
        # Before the first look: until Helm removes it, a leader could still close a budget or raise standbys.
        lease = await take_lease(client, key, HELD_SECONDS) if settings.lease_namespace else None
        if lease is None:
            return await _without_a_lease(client, settings)
        sys.stdout.write("The Lease is taken; waiting until the leader has ended.\n")
        await asyncio.sleep(settings.lease_renew_seconds)
        budgets = await closed_budgets(client, settings)
        if not (budgets or await statefulsets_with_raise(client, settings)):
            sys.stdout.write(f"{NOTHING_TO_DO}\n")
        are_open = await open_budgets(client, budgets)
        are_back = await put_standbys_back(client, settings, lease)
        is_alone = await take_lease(client, key, LEFT_SECONDS) == lease + 1
        if not is_alone:
            sys.stderr.write(f"{ANOTHER_LED}\n")
        return 0 if are_open and are_back and is_alone else 1
    finally:
        await client.close()


async def _without_a_lease(client: KubeClient, settings: Settings) -> int:
    if await closed_budgets(client, settings) or await statefulsets_with_raise(client, settings):
        sys.stderr.write(f"{WITHOUT_A_LEASE}\n")
        return 1
    sys.stdout.write(f"{NOTHING_TO_DO}\n")
    return 0


async def take_lease(client: KubeClient, key: Key, seconds: float) -> int | None:
    """Take the Lease for so long from whoever holds it.

    Returns:
        How often it has changed hands by then; None if there is none.

    Raises:
        ConflictError: It changed each time.
    """
    holder = f"uninstall_{secrets.token_hex(4)}"
    for attempt in range(TRIES):
        lease = await leases.find(client, key)
        if lease is None:
            return None
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
            return says.transitions
    return None
