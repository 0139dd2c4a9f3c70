"""Reads and writes StreamApps through the API server, and raises CliError if that fails.

`change` is the only write of the command line. It sends a merge patch of one field, with the resource version that it
read. If another version is there, `change` reads again: the operator itself writes every few seconds.
"""

import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from streamapp.cli.cluster.api_errors import no_definition, no_such_app, of_kube, of_write
from streamapp.cli.cluster.target import Target
from streamapp.cli.errors import CliError
from streamapp.kube.client import kubeconfig
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError, NotFoundError
from streamapp.kube.client.impersonation import impersonation
from streamapp.kube.client.kinds import STREAM_APPS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection
from streamapp.kube.client.watch import ObjectWatch

DEADLINE_SECONDS = 10.0
USER_AGENT = "kubectl-streamapp"
MANAGER = "kubectl-streamapp"
"""The field manager of every write."""
TRIES = 10

Json = dict[str, Any]

PatchFor = Callable[[Json], Json | None]
"""Gives the patch for a StreamApp as read, or None if there is nothing to write; raises CliError to give up."""


async def resolve(target: Target) -> ClusterConnection:
    """The way to the cluster of this command, with fresh credentials.

    The first look at the kubeconfig chooses context and namespace: what a user was shown and asked about must be what
    is written to.

    Raises:
        CliError: The kubeconfig gives no way, or leads to another cluster than at the first look.
    """
    choice = target.choice
    try:
        act_as = impersonation("the command line", target.act_as, target.act_as_groups, target.act_as_uid)
        found = await kubeconfig.access(target.kubeconfig, target.context or choice.context, os.environ, act_as)
    except KubeError as error:
        raise of_kube(error, None, "") from error
    if not choice.server:
        choice.context = None if found.context == kubeconfig.SERVICE_ACCOUNT else found.context
        choice.namespace, choice.server = found.namespace, found.server
    if found.server != choice.server:
        why = f"it led to {choice.server} when the command began, and now to {found.server}"
        raise CliError(f"kubeconfig, context {found.context}", why, "choose one with --context, and run it again")
    return replace(found, namespace=choice.namespace)


def namespace_of(target: Target, connection: ClusterConnection) -> str:
    """The namespace of the command line, else the namespace of the context."""
    return target.namespace or connection.namespace


async def read_one(target: Target, name: str) -> Json:
    """Read one StreamApp; CliError if it does not exist or the API server does not answer."""
    connection = await resolve(target)
    namespace = namespace_of(target, connection)
    async with open_client(connection, title_of(namespace, name)) as client:
        return await read(client, connection, Key(namespace, name))


async def read(client: KubeClient, connection: ClusterConnection, key: Key) -> Json:
    """Read one StreamApp through an open client.

    Raises:
        CliError: The StreamApp does not exist.
        KubeError: The API server does not answer.
    """
    try:
        resource = await client.get(STREAM_APPS, key.namespace, key.name)
    except NotFoundError as error:
        raise await _missing(client, connection, key.namespace, key.name) from error
    return {"apiVersion": STREAM_APPS.api_version, "kind": STREAM_APPS.name, **resource}


async def list_all(target: Target, *, everywhere: bool) -> list[Json]:
    """List the StreamApps of the namespace, or of all namespaces; CliError if the API server does not answer."""
    connection = await resolve(target)
    namespace = None if everywhere else namespace_of(target, connection)
    async with open_client(connection, title_of(namespace, None)) as client:
        return await client.list(STREAM_APPS, namespace)


async def change(
    client: KubeClient, connection: ClusterConnection, key: Key, patch_for: PatchFor, subresource: str | None = None
) -> None:
    """Read a StreamApp, get its patch, and write the patch to exactly that version; CliError if that fails.

    `patch_for` runs again after every read, so that it sees what others wrote meanwhile.
    """
    what = title_of(key.namespace, key.name)
    resource = STREAM_APPS.plural if subresource is None else f"{STREAM_APPS.plural}/{subresource}"
    for left in reversed(range(TRIES)):
        current = await read(client, connection, key)
        patch = patch_for(current)
        if patch is None:
            return
        version = {"resourceVersion": current["metadata"]["resourceVersion"]}
        fenced = {**patch, "metadata": {**patch.get("metadata", {}), **version}}
        try:
            await client.merge(STREAM_APPS, key.namespace, key.name, fenced, manager=MANAGER, subresource=subresource)
        except KubeError as error:
            if isinstance(error, ConflictError) and left:
                continue
            raise of_write(error, connection, what, resource) from error
        return


async def _missing(client: KubeClient, connection: ClusterConnection, namespace: str, name: str) -> CliError:
    """Why there is no such StreamApp: no definition, a similar name, or another namespace."""
    if not await client.serves(STREAM_APPS):
        return no_definition(connection)
    names = [resource["metadata"]["name"] for resource in await _list_if_allowed(client, namespace)]
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return no_such_app(namespace, name, near)
    everywhere = [resource["metadata"] for resource in await _list_if_allowed(client, None)]
    same = sorted(metadata["namespace"] for metadata in everywhere if metadata["name"] == name)
    return no_such_app(namespace, name, elsewhere=same[:3])


async def _list_if_allowed(client: KubeClient, namespace: str | None) -> list[Json]:
    """List what the user may list: the right to read one object does not include the right to list."""
    try:
        return await client.list(STREAM_APPS, namespace)
    except KubeError:
        return []


@asynccontextmanager
async def open_client(connection: ClusterConnection, what: str) -> AsyncGenerator[KubeClient, None]:
    """Open a client; a KubeError inside the block becomes a CliError about `what`."""
    with translate_errors(connection, what):
        client = _new_client(connection)
        try:
            yield client
        finally:
            await client.close()


def _new_client(connection: ClusterConnection) -> KubeClient:
    try:
        return KubeClient(
            connection.configuration,
            deadline_seconds=DEADLINE_SECONDS,
            user_agent=USER_AGENT,
            act_as=connection.impersonation,
        )
    except OSError as error:
        what = f"kubeconfig, context {connection.context}"
        raise CliError(what, f"its certificates cannot be used: {error}", "log in to the cluster again") from error


@contextmanager
def translate_errors(connection: ClusterConnection | None, what: str) -> Iterator[None]:
    """Turn a KubeError inside the block into a CliError about `what`."""
    try:
        yield
    except KubeError as error:
        raise of_kube(error, connection, what) from error


def watch_source(target: Target, namespace: str | None, name: str | None) -> ObjectWatch:
    """The watch of one StreamApp or several; every connection starts with fresh credentials."""

    async def connect() -> KubeClient:
        return _new_client(await resolve(target))

    return ObjectWatch(connect=connect, kind=STREAM_APPS, namespace=namespace, name=name)


def title_of(namespace: str | None, name: str | None) -> str:
    """How errors name the objects of a request."""
    if name is not None:
        return f"StreamApp {namespace}/{name}"
    return "StreamApps of all namespaces" if namespace is None else f"StreamApps of namespace {namespace}"
