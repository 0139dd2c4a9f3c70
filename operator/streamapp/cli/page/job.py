"""Makes the job that writes the report into its log, waits for it and reads the log.

The chart has the job as a CronJob that never runs by itself. The job removes itself after a minute, so that the user
needs no right to delete.
"""

import asyncio
import gzip
import secrets
import time
from base64 import b64decode
from typing import Any, Final

from streamapp.cli.cluster.api_errors import of_kube
from streamapp.cli.cluster.streamapps import MANAGER
from streamapp.cli.errors import CliError
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import PODS, Kind

Json = dict[str, Any]

CRON_JOBS: Final = Kind("batch", "v1", "cronjobs", "CronJob")
JOBS: Final = Kind("batch", "v1", "jobs", "Job")
SUFFIX: Final = "-analytics-report"
"""Of the CronJob's name, whatever the release is called."""
CONTAINER: Final = "analytics"
KEPT_SECONDS: Final = 60
"""For which a finished job stays."""
LOOK_SECONDS: Final = 1.0
ALL_LINES: Final = 10_000_000
"""More than a node keeps of a log."""


async def fetched(client: KubeClient, namespace: str, timeout_seconds: float) -> str:
    """The page; CliError if there is none, or the user may not fetch it."""
    try:
        cron_job = _chosen(namespace, await client.list(CRON_JOBS, namespace))
        job = await client.create(JOBS, _job(cron_job), manager=MANAGER)
        pod = await _ended(client, namespace, job["metadata"]["name"], timeout_seconds)
        log = await client.log(namespace, pod["metadata"]["name"], CONTAINER, lines=ALL_LINES)
    except UnauthenticatedError:
        raise
    except RefusedError as error:
        step = (
            f"ask for a Role in namespace {namespace} with list on cronjobs, create on jobs (both batch), "
            "list on pods, and get on pods/log"
        )
        raise CliError(f"the report in namespace {namespace}", error.why, step) from error
    except KubeError as error:
        raise of_kube(error, None, "") from error
    return _page(pod, log)


def _chosen(namespace: str, found: list[Json]) -> Json:
    named = [one for one in found if one["metadata"]["name"].endswith(SUFFIX)]
    if len(named) == 1:
        return named[0]
    what = f"the CronJob of the report in namespace {namespace}"
    if named:
        names = ", ".join(sorted(one["metadata"]["name"] for one in named))
        raise CliError(what, f"there are several: {names}", "name another namespace with --operator-namespace")
    step = "set `analytics.enabled` of the chart (docs/analytics.md), or name another with --operator-namespace"
    raise CliError(what, f"there is no CronJob whose name ends with {SUFFIX}", step)


def _job(cron_job: Json) -> Json:
    """As `kubectl create job --from` makes it."""
    metadata, template = cron_job["metadata"], cron_job["spec"]["jobTemplate"]
    owner = {"apiVersion": CRON_JOBS.api_version, "kind": CRON_JOBS.name, "name": metadata["name"]}
    return {
        "metadata": {
            "namespace": metadata["namespace"],
            "name": f"{metadata['name']}-{secrets.token_hex(3)}",
            "labels": (template.get("metadata") or {}).get("labels") or {},
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
            "ownerReferences": [{**owner, "uid": metadata["uid"], "controller": True}],
        },
        "spec": {**template["spec"], "ttlSecondsAfterFinished": KEPT_SECONDS},
    }


async def _ended(client: KubeClient, namespace: str, job: str, timeout_seconds: float) -> Json:
    """The pod of the job when it has ended."""
    until = time.monotonic() + timeout_seconds
    while True:
        pods = await client.list(PODS, namespace, f"batch.kubernetes.io/job-name={job}")
        ended = [pod for pod in pods if pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}]
        if ended:
            return ended[0]
        if time.monotonic() >= until:
            why = f"it has not ended after {timeout_seconds:g} s"
            step = f"see why: kubectl describe pods -n {namespace} -l batch.kubernetes.io/job-name={job}"
            raise CliError(f"job {namespace}/{job}", why, step)
        await asyncio.sleep(LOOK_SECONDS)


def _page(pod: Json, log: bytes) -> str:
    title = f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if pod["status"]["phase"] == "Failed":
        said = " ".join(log.decode(errors="replace").split())[-500:] or "it wrote nothing"
        raise CliError(title, f"it failed: {said}", "run the pipeline first (docs/analytics.md)")
    try:
        return gzip.decompress(b64decode(log)).decode()
    except (ValueError, OSError, EOFError) as error:
        step = "a node keeps only 10 MiB of a log: make a smaller page with `analytics.report.apps` or `.days`"
        raise CliError(title, f"its log is no whole report: {error}", step) from error
