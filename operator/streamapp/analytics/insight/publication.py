"""Puts insight into the ConfigMap that the operator mounts.

Called by the command line after a build. The ConfigMap must be there: the job has the right to read and patch this one
alone. Each write names the version that was read before, so a job that was slow never replaces newer insight.
"""

import asyncio
import os
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.insight.destination import Destination
from streamapp.api.insight import FILE, Insight, InsightRefusedError, is_newer, parse, to_json
from streamapp.kube.client import kubeconfig
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError, NotFoundError
from streamapp.kube.client.kinds import CONFIG_MAPS, Key

MANAGER: Final = "streamapp-analytics"
"""The field manager."""
DEADLINE_SECONDS: Final = 30.0
TRIES: Final = 5


class Publication(Enum):
    """What became of insight."""

    WRITTEN = "written"
    OVERTAKEN = "not written: newer insight is there"


def publish(found: Collection[Insight], destination: Destination) -> Publication:
    """Write the insight of this cluster, within a pod as its service account, else as the kubeconfig says.

    Raises:
        AnalyticsError: there is none of this cluster, or it was not written; what lay there lies there still.
    """
    insight = destination.chosen(found)
    text = to_json(insight)
    _require_good(text, destination, datetime.now(UTC))
    try:
        return asyncio.run(_publish(insight.made_at, text.decode(), destination))
    except KubeError as error:
        raise AnalyticsError(destination.title, error.why, _next_step(error, destination)) from error


def _require_good(text: bytes, destination: Destination, now: datetime) -> None:
    """The operator would refuse what is large or old, and have nothing instead of what lies there."""
    try:
        parse(text, destination.cluster, now)
    except InsightRefusedError as error:
        step = "the former insight stays there; report this insight as a defect"
        raise AnalyticsError(destination.title, f"the operator could not use it: {error}", step) from error


def _next_step(error: KubeError, destination: Destination) -> str:
    if isinstance(error, NotFoundError):
        command = f"kubectl create configmap {destination.name} --namespace {destination.namespace}"
        return f"make it: the chart does, or `{command}`"
    return error.next_step


async def _publish(made_at: datetime, text: str, destination: Destination) -> Publication:
    connection = await kubeconfig.access(None, None, os.environ)
    client = KubeClient(
        connection.configuration,
        deadline_seconds=DEADLINE_SECONDS,
        user_agent=MANAGER,
        act_as=connection.impersonation,
    )
    try:
        return await written(
            client, Key(destination.namespace, destination.name), made_at, text, lambda: datetime.now(UTC)
        )
    finally:
        await client.close()


async def written(
    client: KubeClient, place: Key, made_at: datetime, text: str, now: Callable[[], datetime]
) -> Publication:
    """Write a text that was made at this time, unless a newer one is there.

    Raises:
        KubeError: it was not written; after an `UnavailableError` it can have been.
    """
    for left in reversed(range(TRIES)):
        current = await client.get(CONFIG_MAPS, place.namespace, place.name)
        if is_newer((current.get("data") or {}).get(FILE, ""), made_at, now()):
            return Publication.OVERTAKEN
        version = {"resourceVersion": current["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "data": {FILE: text}}
        try:
            await client.merge(CONFIG_MAPS, place.namespace, place.name, patch, manager=MANAGER)
        except ConflictError:
            if left:
                continue
            raise
        break
    return Publication.WRITTEN
