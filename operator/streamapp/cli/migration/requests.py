"""Reads all that a look at a migration needs, and makes its writes, each fenced by the version that was read."""

from typing import TypeVar

from streamapp.api.http.messages import Answered, GroupTold, Tasks, group_path, tasks_path
from streamapp.api.names import APP_LABEL
from streamapp.cli.cluster import operator_pods, streamapps
from streamapp.cli.cluster.api_errors import of_write
from streamapp.cli.errors import CliError, Unread
from streamapp.cli.migration.facts import Facts, Json
from streamapp.cli.migration.operator_clock import OperatorClock
from streamapp.cli.migration.steps import Change, PatchAutoscaler
from streamapp.cli.model import autoscalers
from streamapp.cli.model.app_view import view_of
from streamapp.cli.model.autoscalers import AutoscalersUnknown
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import (
    ConflictError,
    KubeError,
    NotFoundError,
    RefusedError,
    UnauthenticatedError,
)
from streamapp.kube.client.kinds import AUTOSCALERS, PODS, STATEFUL_SETS, STREAM_APPS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection

Message = TypeVar("Message", bound=Answered)


async def read_facts(
    client: KubeClient,
    connection: ClusterConnection,
    key: Key,
    operator_namespace: str,
    clock: OperatorClock,
    *,
    for_plan: bool = False,
) -> Facts:
    """Read everything anew, for a plan also what the estimate needs, dated by the operator's clock.

    Raises:
        CliError, KubeError: No StreamApp was read.
    """
    # The group first: what the StreamApp says of its pods is then never older than the brokers' word.
    group = await _ask(client, operator_namespace, group_path(key.namespace, key.name), GroupTold)
    clock.learn(group.told_at if isinstance(group, GroupTold) else None)
    statefulset = await _statefulset(client, key)
    scalers = await _autoscalers(client, key)
    resource = await streamapps.read(client, connection, key)
    return Facts(
        resource=resource,
        view=view_of(resource, clock.now()),
        group=group,
        statefulset=statefulset,
        autoscalers=scalers,
        tasks=await _ask(client, operator_namespace, tasks_path(key.namespace, key.name), Tasks)
        if for_plan
        else Unread("they were not asked for"),
        pods=await _pods(client, key) if for_plan else (),
    )


async def write(
    client: KubeClient, connection: ClusterConnection, facts: Facts, step: Change | PatchAutoscaler
) -> None:
    """Make one write.

    Raises:
        CliError: It failed, or it is unknown whether it was made.
        ConflictError: Another writer was faster; nothing was written.
    """
    is_change = isinstance(step, Change)
    body, kind = (facts.resource, STREAM_APPS) if isinstance(step, Change) else (step.body, AUTOSCALERS)
    namespace, name = facts.resource["metadata"]["namespace"], body["metadata"]["name"]
    version = {"resourceVersion": body["metadata"]["resourceVersion"]}
    fenced = {**step.patch, "metadata": {**step.patch.get("metadata", {}), **version}}
    try:
        await client.merge(kind, namespace, name, fenced, manager=streamapps.MANAGER)
    except ConflictError:
        raise
    except KubeError as error:
        if not is_change and isinstance(error, NotFoundError):
            raise ConflictError(error.what, error.why, error.next_step) from error
        title = f"{kind.name} {namespace}/{name}"
        failed = of_write(error, connection, title, kind.plural, kind.group)
        again = f"{failed.next_step}; run the command again, it goes on from what it finds"
        raise CliError(failed.what, failed.why, again) from error


async def _ask(client: KubeClient, namespace: str, path: str, model: type[Message]) -> Message | Unread:
    try:
        leader = await operator_pods.find_leader(client, namespace)
        return await operator_pods.ask(client, leader, path, model)
    except CliError as error:
        return Unread(f"{error.what}: {error.why}")
    except UnauthenticatedError:
        raise
    except KubeError as error:
        return Unread(f"{error.what}: {error.why}")


async def _statefulset(client: KubeClient, key: Key) -> Json | Unread | None:
    try:
        return await client.find(STATEFUL_SETS, key.namespace, key.name)
    except UnauthenticatedError:
        raise
    except RefusedError as error:
        return Unread(error.why)


async def _autoscalers(client: KubeClient, key: Key) -> tuple[Json, ...] | AutoscalersUnknown:
    try:
        return autoscalers.aimed_at(key.name, await client.list(AUTOSCALERS, key.namespace))
    except NotFoundError:
        return ()  # an API server without this API has no autoscalers
    except UnauthenticatedError:
        raise
    except RefusedError as error:
        return AutoscalersUnknown(error.why)


async def _pods(client: KubeClient, key: Key) -> tuple[Json, ...]:
    try:
        return tuple(await client.list(PODS, key.namespace, f"{APP_LABEL}={key.name}"))
    except UnauthenticatedError:
        raise
    except RefusedError:
        return ()
