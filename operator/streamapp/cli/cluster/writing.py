"""Writes the wish, the annotations and the pause of a StreamApp: the only module of the command line that writes.

Every write is a merge patch of the one field that it is about, carries the version that was read, and is made again
from a fresh read where another version is there: the operator itself writes every few seconds.
"""

from collections.abc import Callable
from typing import Any

from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.api_errors import of_write
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError
from streamapp.kube.client.kinds import STREAM_APPS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection

MANAGER = "kubectl-streamapp"
"""The field manager, by which `history` tells who wrote."""
TRIES = 10

Json = dict[str, Any]

Change = Callable[[Json], Json | None]
"""Gives the patch for a StreamApp as it was read, or None where nothing is to be written; CliError to give up."""


async def change(
    client: KubeClient, found: ClusterConnection, key: Key, patch_for: Change, subresource: str | None = None
) -> None:
    """Read, ask for the patch, and write it to exactly the version that was read; CliError where that cannot be done.

    `patch_for` is asked again after every read, so that it can see what others wrote meanwhile.
    """
    what = streamapps.title_of(key.namespace, key.name)
    resource = STREAM_APPS.plural if subresource is None else f"{STREAM_APPS.plural}/{subresource}"
    for left in reversed(range(TRIES)):
        read = await streamapps.read(client, found, key)
        patch = patch_for(read)
        if patch is None:
            return
        version = {"resourceVersion": read["metadata"]["resourceVersion"]}
        fenced = {**patch, "metadata": {**patch.get("metadata", {}), **version}}
        try:
            await client.merge(STREAM_APPS, key.namespace, key.name, fenced, manager=MANAGER, subresource=subresource)
        except KubeError as error:
            if isinstance(error, ConflictError) and left:
                continue
            raise of_write(error, found, what, resource) from error
        return
