"""`kubectl streamapp bundle` against an API server with an operator behind its pod proxy, and where parts fail."""

import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import a_snapshot
from tests.cli.cluster import NAMESPACE, Cluster
from tests.cli.conftest import Run
from tests.cli.operator_there import SYSTEM, OperatorThere
from tests.cli.showing import a_resource
from tests.statuses import answer

pytestmark = pytest.mark.usefixtures("there", "here")

Json = dict[str, Any]
SECRET = "hunter2-S3CR3T"
LABELS = {"streamapp.dev/app": "wordcount"}


def a_pod(name: str, restarts: int = 0) -> Json:
    return {
        "metadata": {"namespace": NAMESPACE, "name": name, "labels": LABELS},
        "spec": {"containers": [{"name": "app", "env": [{"name": "DB_URL", "value": SECRET}]}]},
        "status": {"containerStatuses": [{"name": "app", "restartCount": restarts}]},
    }


def an_event(name: str, regarding: str) -> Json:
    return {"metadata": {"namespace": NAMESPACE, "name": name}, "regarding": {"name": regarding}, "reason": "Held"}


@pytest.fixture
def there(cluster: Cluster) -> OperatorThere:
    """An operator that keeps no record, and a StreamApp with one pod, among others' objects."""
    operator = OperatorThere(cluster)
    operator.install(lease="operator-a_x7k2")
    operator.serve()
    cluster.put(a_resource(answer(a_snapshot(desired=3, record=None))))
    operator.put("pods", a_pod("wordcount-0", restarts=1))
    operator.put("pods", {**a_pod("other-0"), "metadata": {"namespace": NAMESPACE, "name": "other-0"}})
    for name, regarding in (("e1", "wordcount"), ("e2", "wordcount-0"), ("e3", "wordcounter"), ("e4", "other-0")):
        operator.put("events", an_event(name, regarding))
    for pod in ("operator-a", "operator-b"):
        operator.logs[pod, "operator", False] = f"{pod} began\npassword={SECRET}\n".encode()
    operator.logs["wordcount-0", "app", False] = b"now\n"
    operator.logs["wordcount-0", "app", True] = f"before\nBearer {SECRET}\n".encode()
    metrics = 'a_total 1.0\nb{namespace="demo",name="wordcount"} 2.0\nb{namespace="demo",name="other"} 3.0\n'
    operator.answers["/metrics"] = (200, metrics.encode())
    return operator


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def unpacked(archive: Path) -> dict[str, str]:
    """The files of an archive, without its folder."""
    with tarfile.open(archive) as tar:
        found = {}
        for entry in tar.getmembers():
            content = tar.extractfile(entry)
            assert content is not None
            found[entry.name.split("/", 1)[1]] = content.read().decode()
        return found


def test_everything_that_explains_a_state_is_in_it_and_no_secret(there: OperatorThere, run: Run, here: Path) -> None:
    ran = run("bundle", "wordcount", "--yes", "--application-logs")
    (archive,) = here.iterdir()
    assert (ran.code, stat.S_IMODE(archive.stat().st_mode)) == (0, 0o600)
    assert archive.name.startswith("streamapp-demo-wordcount-")
    files = unpacked(archive)
    assert set(files) == {
        "about.txt",
        "streamapp.yaml",
        "status.json",
        "explanation.json",
        "statefulset.yaml",
        "pods.yaml",
        "volume-claims.yaml",
        "disruption-budgets.yaml",
        "autoscalers.yaml",
        "events.yaml",
        "operator/pods.yaml",
        "operator/lease.yaml",
        "operator/operator-a.operator.log",
        "operator/operator-b.operator.log",
        "operator/operator-a.metrics",
        "operator/findings.json",
        "operator/tasks.json",
        "logs/wordcount-0.app.log",
        "logs/wordcount-0.app.previous.log",
        "doctor.json",
    }
    assert SECRET not in "".join(files.values())
    assert [one["metadata"]["name"] for one in yaml.safe_load(files["pods.yaml"])] == ["wordcount-0"]
    assert [one["metadata"]["name"] for one in yaml.safe_load(files["events.yaml"])] == ["e1", "e2"]
    assert files["operator/operator-a.metrics"] == 'a_total 1.0\nb{namespace="demo",name="wordcount"} 2.0\n'
    assert files["operator/operator-a.operator.log"].startswith("operator-a began\n")
    assert "not read: operator/history.json" in files["about.txt"]
    assert there.cluster.written == []


def test_secrets_and_config_maps_are_never_asked_for(there: OperatorThere, run: Run) -> None:
    assert run("bundle", "wordcount", "--yes").code == 0
    reads = there.cluster.do(lambda server: list(server.reads))
    assert [path for path in reads if "/secrets" in path or "/configmaps" in path] == []


def test_logs_of_the_application_come_only_if_they_are_asked_for(run: Run, here: Path) -> None:
    run("bundle", "wordcount", "--yes")
    (archive,) = here.iterdir()
    assert [path for path in unpacked(archive) if path.startswith("logs/")] == []


def test_a_user_sees_the_files_first_and_nothing_is_written_without_a_yes(run: Run, here: Path) -> None:
    ran = run("bundle", "wordcount")
    assert (ran.code, list(here.iterdir())) == (1, [])
    (pods,) = (line.split() for line in ran.out.splitlines() if line.startswith("pods.yaml"))
    assert pods[-1] == "1"  # removed
    assert "add --yes" in ran.err


def test_a_dry_run_shows_every_line_and_writes_nothing(run: Run, here: Path) -> None:
    ran = run("bundle", "wordcount", "--dry-run")
    assert (ran.code, list(here.iterdir())) == (0, [])
    assert "==> operator/operator-a.operator.log <==" in ran.out
    assert "operator-a began" in ran.out
    assert SECRET not in ran.out


def test_what_the_user_may_not_read_is_named_and_the_rest_is_written(
    there: OperatorThere, run: Run, here: Path
) -> None:
    there.cluster.refuse(403, 'pods is forbidden: User "me" cannot list', path=f"/namespaces/{SYSTEM}/")
    ran = run("bundle", "wordcount", "--yes", "--file", "mine.tar.gz")
    assert ran.code == 0
    files = unpacked(here / "mine.tar.gz")
    assert "streamapp.yaml" in files
    assert "operator/pods.yaml" not in files
    assert 'not read: operator/pods.yaml: pods is forbidden: User "me" cannot list' in files["about.txt"]
    assert "operator/pods.yaml" in ran.out


def test_a_file_that_exists_is_kept(run: Run, here: Path) -> None:
    (here / "mine.tar.gz").write_text("mine")
    ran = run("bundle", "wordcount", "--yes", "--file", "mine.tar.gz")
    assert (ran.code, (here / "mine.tar.gz").read_text()) == (1, "mine")
    assert "it exists already" in ran.err


def test_a_folder_that_is_not_there_is_named(run: Run) -> None:
    ran = run("bundle", "wordcount", "--yes", "--file", "nowhere/mine.tar.gz")
    assert ran.code == 1
    assert "nowhere/mine.tar.gz" in ran.err


def test_without_such_a_streamapp_nothing_is_written(run: Run, here: Path) -> None:
    ran = run("bundle", "wordcont", "--yes")
    assert (ran.code, list(here.iterdir())) == (1, [])
    assert "wordcount" in ran.err
