"""Reads a StatefulSet with all that stands around it, and makes the writes of `adopt` and `disown`.

Every write is fenced by the version that was read, and made with the rights of the user.
"""

import asyncio

from streamapp.cli.adoption.facts import Facts, Json, of_statefulset
from streamapp.cli.adoption.steps import (
    CreateStatefulSet,
    CreateStreamApp,
    DeleteStreamApp,
    OrphanPods,
    Patch,
    Progress,
)
from streamapp.cli.cluster.api_errors import of_write
from streamapp.cli.cluster.streamapps import MANAGER
from streamapp.cli.errors import CliError, Unread
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError, NotFoundError, RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import (
    ACCESS_REVIEWS,
    AUTOSCALERS,
    BUDGETS,
    CLAIMS,
    PODS,
    SCALED_OBJECTS,
    SERVICES,
    STATEFUL_SETS,
    STREAM_APPS,
    VERTICAL_AUTOSCALERS,
    Key,
    Kind,
)
from streamapp.kube.client.kubeconfig import ClusterConnection

Write = CreateStreamApp | Patch | OrphanPods | CreateStatefulSet | DeleteStreamApp
Rights = tuple[tuple[Kind, str], ...]
_PATCHED = {kind.name: kind for kind in (STREAM_APPS, STATEFUL_SETS, PODS, SERVICES, BUDGETS)}
TO_ADOPT: Rights = (
    (STREAM_APPS, "create"),
    (STREAM_APPS, "patch"),
    (STATEFUL_SETS, "patch"),
    (STATEFUL_SETS, "delete"),
    (PODS, "patch"),
    (SERVICES, "patch"),
)
TO_DISOWN: Rights = (
    (STREAM_APPS, "patch"),
    (STREAM_APPS, "delete"),
    (STATEFUL_SETS, "create"),
    (STATEFUL_SETS, "patch"),
    (STATEFUL_SETS, "delete"),
    (PODS, "patch"),
    (SERVICES, "patch"),
    (BUDGETS, "patch"),
)


async def read_facts(client: KubeClient, key: Key, rights: Rights) -> Facts:
    """Read everything anew, and ask for the rights; KubeError if what the command cannot do without is not read."""
    namespace, name = key.namespace, key.name
    statefulset, streamapp, service = await asyncio.gather(
        client.find(STATEFUL_SETS, namespace, name),
        client.find(STREAM_APPS, namespace, name),
        client.find(SERVICES, namespace, name),
    )
    # After the StatefulSet: each pod that it had then is in view, or gone.
    pods, claims, budgets = await asyncio.gather(
        client.list(PODS, namespace), client.list(CLAIMS, namespace), client.list(BUDGETS, namespace)
    )
    scalers = await asyncio.gather(
        *(if_served(client, kind, namespace) for kind in (AUTOSCALERS, SCALED_OBJECTS, VERTICAL_AUTOSCALERS))
    )
    missing = await asyncio.gather(*(_lacks(client, kind, verb, namespace) for kind, verb in rights))
    of_templates = {claim["metadata"]["name"] for pod in of_statefulset(name, pods) for claim in _claims(pod, claims)}
    return Facts(
        namespace=namespace,
        name=name,
        statefulset=statefulset,
        streamapp=streamapp,
        pods=of_statefulset(name, pods),
        claims=tuple(claim for claim in claims if claim["metadata"]["name"] in of_templates),
        service=service,
        budgets=tuple(budgets),
        autoscalers=scalers[0],
        scaled_objects=scalers[1],
        vertical_autoscalers=scalers[2],
        missing_rights=tuple(filter(None, missing)),
    )


def _claims(pod: Json, claims: list[Json]) -> list[Json]:
    """The claims that have a pod's name at their end, as those of a StatefulSet do."""
    return [claim for claim in claims if claim["metadata"]["name"].endswith(f"-{pod['metadata']['name']}")]


async def if_served(client: KubeClient, kind: Kind, namespace: str) -> tuple[Json, ...] | Unread:
    """List what is of a kind that a cluster may not have; empty if it has not, also for users without the right to it.

    KubeError if the API server does not answer.
    """
    try:
        return tuple(await client.list(kind, namespace))
    except NotFoundError:
        return ()
    except UnauthenticatedError:
        raise
    except RefusedError as error:
        # Rights are looked at first: without them, an API that is not there is refused, too.
        is_optional = kind is not AUTOSCALERS
        return () if is_optional and not await client.serves(kind) else Unread(error.why)


async def _lacks(client: KubeClient, kind: Kind, verb: str, namespace: str) -> str:
    attributes = {"group": kind.group, "resource": kind.plural, "verb": verb, "namespace": namespace}
    review = await client.create(ACCESS_REVIEWS, {"metadata": {}, "spec": {"resourceAttributes": attributes}})
    return "" if review["status"]["allowed"] else f"{verb} {kind.plural}"


async def write(
    client: KubeClient, connection: ClusterConnection, key: Key, step: Write, progress: Progress
) -> Progress:
    """Make one write.

    Raises:
        CliError: It failed, or it is unknown whether it was made.
        ConflictError: Another writer was faster; nothing was written.
    """
    try:
        return await _write(client, key, step, progress)
    except ConflictError:
        raise
    except KubeError as error:
        if isinstance(error, NotFoundError) and not isinstance(step, CreateStreamApp | CreateStatefulSet):
            # Deleted by another user, or by this request, if the connection broke and was sent again.
            raise ConflictError(error.what, error.why, error.next_step) from error
        kind, title = _object(step, key)
        raise _and_again(of_write(error, connection, title, kind.plural, kind.group)) from error


async def _write(client: KubeClient, key: Key, step: Write, progress: Progress) -> Progress:
    match step:
        case CreateStreamApp(body):
            made = await client.create(STREAM_APPS, body, manager=MANAGER)
            return Progress(asked_generation=made["metadata"]["generation"])
        case CreateStatefulSet(body):
            await client.create(STATEFUL_SETS, body, manager=MANAGER)
        case OrphanPods(body):
            await _orphan(client, STATEFUL_SETS, body)
        case DeleteStreamApp(body):
            await _orphan(client, STREAM_APPS, body)
        case Patch(kind, body, patch, asks=asks):
            name, version = body["metadata"]["name"], body["metadata"]["resourceVersion"]
            fenced = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}
            made = await client.merge(_PATCHED[kind], key.namespace, name, fenced, manager=MANAGER)
            return Progress(asked_generation=made["metadata"]["generation"]) if asks else progress
    return progress


async def _orphan(client: KubeClient, kind: Kind, body: Json) -> None:
    metadata = body["metadata"]
    await client.delete(
        kind,
        metadata["namespace"],
        metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        orphan=True,
    )


def _object(step: Write, key: Key) -> tuple[Kind, str]:
    match step:
        case Patch(name, body):
            return _PATCHED[name], f"{name} {key.namespace}/{body['metadata']['name']}"
        case OrphanPods() | CreateStatefulSet():
            return STATEFUL_SETS, f"StatefulSet {key}"
        case _:
            return STREAM_APPS, f"StreamApp {key}"


def _and_again(error: CliError) -> CliError:
    """What every write has in common: the next run goes on from what is there."""
    again = "run the command again: it goes on from what it finds"
    return CliError(
        error.what, error.why, error.next_step if "again" in error.next_step else f"{error.next_step}; {again}"
    )
