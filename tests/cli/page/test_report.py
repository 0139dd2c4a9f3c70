"""`kubectl streamapp report` against an API server: the job it makes, the file it writes, the link it opens."""

import gzip
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from streamapp.cli.page import command
from tests.cli.cluster import Cluster
from tests.cli.commands.test_status import an_error
from tests.cli.conftest import Run
from tests.cli.operator_there import SYSTEM
from tests.kube.api_server import ApiServer

Json = dict[str, Any]
CRON_JOB = "streamapp-operator-analytics-report"
PAGE = '<!doctype html><section data-name="demo/wordcount"></section>'


@dataclass
class Jobs:
    """What the job controller and the kubelet do: a pod for each job, which ends with a log."""

    cluster: Cluster
    phase: str = "Succeeded"
    log: bytes = b64encode(gzip.compress(PAGE.encode()))
    made: list[Json] = field(default_factory=list)

    def serve(self, *names: str) -> None:
        """Have CronJobs of these names, and run their jobs."""
        spec = {"jobTemplate": {"metadata": {"labels": {"of": "us"}}, "spec": {"backoffLimit": 0, "template": {}}}}
        for name in names:
            body = {"metadata": {"namespace": SYSTEM, "name": name}, "spec": spec}
            self.cluster.do(lambda server, body=body: server.put("cronjobs", body))  # type: ignore[misc]

        def serve(server: ApiServer) -> None:
            server.elsewhere = lambda request, body: self._act(server, request, body)

        self.cluster.do(serve)

    def _act(self, server: ApiServer, request: web.Request, body: Json) -> web.Response | None:
        if request.path.endswith("/log"):
            return web.Response(body=self.log)
        if request.method == "POST" and request.path.endswith("/jobs"):
            self.made.append(body)
            name = body["metadata"]["name"]
            labels = {"batch.kubernetes.io/job-name": name}
            pod = {"metadata": {"namespace": SYSTEM, "name": f"{name}-x", "labels": labels}}
            server.put("pods", {**pod, "status": {"phase": self.phase}})
        return None


@pytest.fixture
def jobs(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.chdir(tmp_path)
    found = Jobs(cluster)
    found.serve(CRON_JOB, "another")
    return found


def test_the_report_is_fetched_by_a_job_that_removes_itself(run: Run, jobs: Jobs, tmp_path: Path) -> None:
    ran = run("report")
    assert (ran.code, ran.out.strip()) == (0, (tmp_path / "streamapp-report.html").as_uri())
    assert (tmp_path / "streamapp-report.html").read_text() == PAGE
    (job,) = jobs.made
    assert job["metadata"]["name"].startswith(f"{CRON_JOB}-")
    assert job["metadata"]["labels"] == {"of": "us"}
    owner = job["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", CRON_JOB, True)
    assert job["spec"] == {"backoffLimit": 0, "template": {}, "ttlSecondsAfterFinished": 60}
    assert jobs.cluster.written == [("POST", "jobs")]


def test_the_link_shows_one_application_at_one_time(
    run: Run, jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert jobs.made == []
    opened: list[str] = []

    def opener(link: str) -> bool:
        opened.append(link)
        return True

    monkeypatch.setattr(command, "open_link", opener)
    times = ("--since", "2026-11-21T02:00", "--until", "2026-11-21T03:30")
    ran = run("report", "wordcount", *times, "--open", "--file", "r.html")
    link = (tmp_path / "r.html").as_uri()
    assert ran.out.strip() == f"{link}#demo/wordcount?since=2026-11-21T02:00:00Z&until=2026-11-21T03:30:00Z"
    assert opened == [ran.out.strip()]


def test_what_cannot_be_fetched_is_an_error_with_the_next_step(run: Run, jobs: Jobs) -> None:
    what, why, _ = an_error(run("report", "nobody").err)
    assert (what, "no part about StreamApp demo/nobody" in why) == ("streamapp-report.html", True)
    jobs.log = jobs.log[:20]
    assert "its log is no whole report" in an_error(run("report").err)[1]
    jobs.phase, jobs.log = "Failed", b"error: /tables/report.html: there is no report yet\n"
    assert "there is no report yet" in an_error(run("report").err)[1]
    jobs.phase = "Pending"
    assert "it has not ended after 1 s" in an_error(run("report", "--timeout", "1").err)[1]
    jobs.serve(f"b{CRON_JOB}")
    assert f"there are several: b{CRON_JOB}, {CRON_JOB}" in an_error(run("report").err)[1]
    assert run("report", "--since", "02:00").code == 2
    assert run("report", "wordcount", "--since", "soon").code == 2


def test_a_user_who_may_not_make_jobs_is_told_which_role_is_missing(run: Run, jobs: Jobs) -> None:
    jobs.cluster.refuse_write(403, 'jobs is forbidden: User "me" cannot create resource "jobs"')
    _, why, step = an_error(run("report").err)
    assert "cannot create" in why
    assert "create on jobs" in step


def test_without_the_pipeline_the_chart_value_is_named(run: Run, cluster: Cluster) -> None:
    assert cluster.written == []
    _, why, step = an_error(run("report").err)
    assert f"no CronJob whose name ends with {CRON_JOB[18:]}" in why
    assert "analytics.enabled" in step
