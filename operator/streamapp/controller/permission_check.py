"""`python -m streamapp check`: whether the operator can work here, as a table of checks with their fixes.

Run in a pod under the operator's own service account and settings, by `helm test` or by a user. It only reads.
"""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from streamapp.controller.settings import Settings
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.kinds import STREAM_APPS
from streamapp.kube.client.own_access import own_configuration
from streamapp.kube.objects.rights import RIGHTS, Right, RightScope, is_granted

READY_SECONDS = 5.0
"""For the answer about readiness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionCheck:
    """One line of the table."""

    what: str
    where: str
    is_there: bool
    fix: str
    """What a person does where it is not there."""
    optional: bool = False

    @property
    def answer(self) -> str:
        """The first column."""
        if self.is_there:
            return "yes"
        return "no, optional" if self.optional else "NO"


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Check, print the table, and give the exit code: 0 where everything is there, 1 where something lacks.

    Raises InvalidSettingError, and KubeError where the API server cannot be asked.
    """
    parser = argparse.ArgumentParser(prog="python -m streamapp check", description="See whether the operator can work.")
    parser.add_argument("--ready", metavar="URL", help="where a running operator says that it is ready")
    chosen = parser.parse_args(arguments)
    findings = asyncio.run(_check(Settings.from_environment(environment)))
    if chosen.ready:
        findings.append(_readiness(chosen.ready))
    print(table(findings))  # noqa: T201 (what the command is for)
    return 1 if any(not (each.is_there or each.optional) for each in findings) else 0


def table(findings: Sequence[PermissionCheck]) -> str:
    """Write the findings as aligned columns, and a last line with the sum."""
    rows = [("there", "what", "where", "otherwise")]
    rows += [(each.answer, each.what, each.where, "" if each.is_there else each.fix) for each in findings]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*(row[i].ljust(widths[i]) for i in range(3)), row[3]]).rstrip() for row in rows]
    lacking = sum(not (each.is_there or each.optional) for each in findings)
    end = f"{lacking} of {len(findings)} are not there" if lacking else f"all {len(findings)} checked, nothing lacks"
    return "\n".join([*lines, "", end])


async def _check(settings: Settings) -> list[PermissionCheck]:
    client = KubeClient(await own_configuration(), deadline_seconds=settings.request_deadline_seconds)
    try:
        served = PermissionCheck(
            what=f"definition {STREAM_APPS.plural}.{STREAM_APPS.group}",
            where="cluster",
            is_there=await client.serves(STREAM_APPS),
            fix=f"install it: the chart with crds.enabled, or crds/{STREAM_APPS.plural}.{STREAM_APPS.group}.yaml",
        )
        return [served, *await _rights(client, settings)]
    finally:
        await client.close()


async def _rights(client: KubeClient, settings: Settings) -> list[PermissionCheck]:
    watched: tuple[str | None, ...] = settings.namespaces or (None,)
    own: tuple[str | None, ...] = (settings.lease_namespace,) if settings.lease_namespace else ()
    nodes: tuple[str | None, ...] = (None,) if settings.watch_nodes else ()
    places = {RightScope.WATCHED: watched, RightScope.OWN: own, RightScope.CLUSTER: nodes}
    checks = [
        (right, verb, what, namespace)
        for right in RIGHTS
        for namespace in places[right.where]
        for verb, what in right.reviews()
    ]
    answers = await asyncio.gather(
        *(is_granted(client, right, verb, where, settings.lease_name) for right, verb, _, where in checks)
    )
    return [
        PermissionCheck(
            what=f"{verb} {what}",
            where=namespace or "all namespaces",
            is_there=answer,
            fix=_fix(right, verb, namespace),
            optional=right.optional and right.where is not RightScope.CLUSTER,
        )
        for (right, verb, what, namespace), answer in zip(checks, answers, strict=True)
    ]


def _fix(right: Right, verb: str, namespace: str | None) -> str:
    role = f"a Role in {namespace}" if namespace else "the ClusterRole"
    return f"{right.why} Let {role} of the operator grant {verb} on {right.path}, as the chart of this release does"


def _readiness(url: str) -> PermissionCheck:
    """Ask a running operator, or a Service in front of it."""
    place = urlsplit(url)
    fix = "look at the operator's pods: kubectl get pods, kubectl logs"
    try:
        connection = HTTPConnection(place.hostname or "", place.port or 80, timeout=READY_SECONDS)
        try:
            connection.request("GET", place.path or "/")
            status = connection.getresponse().status
        finally:
            connection.close()
    except (OSError, HTTPException) as error:
        return PermissionCheck(what="ready", where=url, is_there=False, fix=f"no answer ({error}); {fix}")
    return PermissionCheck(what="ready", where=url, is_there=status == 200, fix=f"it answers {status}; {fix}")
