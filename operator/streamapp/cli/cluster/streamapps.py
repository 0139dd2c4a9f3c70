"""Asks the API server for StreamApps, and says in a person's words why it does not answer.

Called by `commands`; `streamapp.kube` does the asking.
"""

import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from difflib import get_close_matches
from typing import Any

from streamapp.cli.cluster.api_errors import no_definition, no_such_app, of_kube
from streamapp.cli.cluster.target import Where
from streamapp.cli.errors import CliError
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, NotFoundError
from streamapp.kube.client.kinds import STREAM_APPS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection, access
from streamapp.kube.client.watch import ObjectWatch

DEADLINE_SECONDS = 10.0
USER_AGENT = "kubectl-streamapp"

Json = dict[str, Any]


async def find(where: Where) -> ClusterConnection:
    """How to reach the cluster; CliError if that cannot be told."""
    try:
        return await access(where.kubeconfig, where.context, os.environ)
    except KubeError as error:
        raise of_kube(error, None, "") from error


def namespace_of(where: Where, found: ClusterConnection) -> str:
    """The namespace that was said, else that of the context."""
    return where.namespace or found.namespace


async def one(where: Where, name: str) -> Json:
    """Read one StreamApp; CliError if there is none or nobody answers."""
    found = await find(where)
    namespace = namespace_of(where, found)
    async with opened(found, title_of(namespace, name)) as client:
        return await read(client, found, Key(namespace, name))


async def read(client: KubeClient, found: ClusterConnection, key: Key) -> Json:
    """Read one StreamApp through a client that is open; CliError if there is none, KubeError if nobody answers."""
    try:
        resource = await client.get(STREAM_APPS, key.namespace, key.name)
    except NotFoundError as error:
        raise await missing(client, found, key.namespace, key.name) from error
    return {"apiVersion": STREAM_APPS.api_version, "kind": STREAM_APPS.name, **resource}


async def several(where: Where, *, everywhere: bool) -> list[Json]:
    """Read the StreamApps of the namespace, or of all; CliError if nobody answers."""
    found = await find(where)
    namespace = None if everywhere else namespace_of(where, found)
    async with opened(found, title_of(namespace, None)) as client:
        return await client.list(STREAM_APPS, namespace)


async def missing(client: KubeClient, found: ClusterConnection, namespace: str, name: str) -> CliError:
    """Say why there is no such StreamApp: no definition, or another name or namespace."""
    if not await client.serves(STREAM_APPS):
        return no_definition(found)
    here = [one["metadata"]["name"] for one in await _listed(client, namespace)]
    near = get_close_matches(name, here, n=3, cutoff=0.5)
    if near:
        return no_such_app(namespace, name, near)
    elsewhere = [one["metadata"] for one in await _listed(client, None)]
    same = sorted(other["namespace"] for other in elsewhere if other["name"] == name)
    return no_such_app(namespace, name, elsewhere=same[:3])


async def _listed(client: KubeClient, namespace: str | None) -> list[Json]:
    """What can be listed; whoever may read one object need not be allowed to list."""
    try:
        return await client.list(STREAM_APPS, namespace)
    except KubeError:
        return []


@asynccontextmanager
async def opened(found: ClusterConnection, what: str) -> AsyncGenerator[KubeClient, None]:
    """Open a client for a while; what the API server refuses within it is a CliError about `what`."""
    with told(found, what):
        client = await _connected(found)
        try:
            yield client
        finally:
            await client.close()


async def _connected(found: ClusterConnection) -> KubeClient:
    try:
        return KubeClient(found.configuration, deadline_seconds=DEADLINE_SECONDS, user_agent=USER_AGENT)
    except OSError as error:
        where = f"kubeconfig, context {found.context}"
        raise CliError(where, f"its certificates cannot be used: {error}", "log in to the cluster again") from error


@contextmanager
def told(found: ClusterConnection | None, what: str) -> Iterator[None]:
    """Raise what the API server says as a CliError about this object."""
    try:
        yield
    except KubeError as error:
        raise of_kube(error, found, what) from error


def following(where: Where, namespace: str | None, name: str | None) -> ObjectWatch:
    """What to follow; every try begins with fresh credentials."""

    async def connect_anew() -> KubeClient:
        return await _connected(await find(where))

    return ObjectWatch(connect=connect_anew, kind=STREAM_APPS, namespace=namespace, name=name)


def title_of(namespace: str | None, name: str | None) -> str:
    """What is asked for, as errors name it."""
    if name is not None:
        return f"StreamApp {namespace}/{name}"
    return "StreamApps of all namespaces" if namespace is None else f"StreamApps of namespace {namespace}"
