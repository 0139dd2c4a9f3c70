"""kind: once for real where Docker is, and everywhere the commands that it is given."""

import os
from pathlib import Path

import pytest

from lab.clusters import kind
from lab.clusters.cluster import EXTERNAL_BOOTSTRAP, is_session
from lab.clusters.kind import KindCluster, check_docker
from lab.clusters.kubectl import Kubectl
from lab.errors import LabError
from lab.settings import LAB, Settings
from tests.lab_unit.stand_ins import StandIns

TAGS = ["localhost/streamapp/kafka:4.2.1", "localhost/streamapp/counter:lab"]


def _missing() -> str:
    try:
        check_docker(os.environ.get("PATH", ""))
    except LabError as error:
        return error.what
    return ""


@pytest.mark.lifecycle
@pytest.mark.timeout(1500)
@pytest.mark.skipif(bool(_missing()), reason=_missing())
def test_a_real_kind_cluster_comes_up_with_a_broker_and_goes() -> None:
    cluster = KindCluster(Settings.from_environment({**os.environ, "CLUSTER": "kind"}))
    cluster.up()
    try:
        with cluster.session() as session:
            pod = Kubectl(session).json("get", "pod", "kafka-0", "--namespace", "kafka")
            ready = {each["type"]: each["status"] for each in pod["status"]["conditions"]}
            assert ready["Ready"] == "True"
    finally:
        cluster.down()
    with pytest.raises(LabError, match="not up"), cluster.session():
        pass


@pytest.fixture
def cluster(stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch) -> KindCluster:
    """Give kind with programs that only write down what they are asked, and images that are built already."""
    monkeypatch.setenv("PATH", stand_ins.path)
    monkeypatch.setattr(kind, "build_for_docker", lambda _: TAGS)
    stand_ins.put("docker")
    stand_ins.put("kind")
    # `get namespace` prints nothing: it is not there yet.
    stand_ins.put("kubectl")
    return KindCluster(Settings.from_environment({"CLUSTER": "kind"}))


def _up(stand_ins: StandIns) -> None:
    stand_ins.put(
        "kind", 'case "$*" in "get clusters") echo streamapp-lab;; "get kubeconfig"*) echo "kind: Config";; esac'
    )


def _of_kind(stand_ins: StandIns) -> list[list[str]]:
    return [call.split()[1:] for call in stand_ins.calls() if call.startswith("kind ")]


def test_up_makes_the_cluster_of_the_lab_without_touching_the_users_kubeconfig(
    cluster: KindCluster, stand_ins: StandIns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    monkeypatch.setenv("KUBECONFIG", str(own))
    # Like kind: writes to --kubeconfig, or else to the user's own; the cluster is there from then on.
    made = tmp_path / "made"
    stand_ins.put(
        "kind",
        f'case "$*" in\n  "get clusters") [ ! -e {made} ] || echo streamapp-lab;;\n  "create cluster"*)\n'
        f'    case "$*" in *--kubeconfig*) touch {made};; *) touch {made} "$KUBECONFIG";; esac;;\nesac',
    )
    cluster.up()
    create = next(words for words in _of_kind(stand_ins) if words[0] == "create")
    assert create[create.index("--config") + 1] == str(LAB / "kind.yaml")
    assert create[create.index("--image") + 1] == Settings.from_environment().versions.kind_node
    assert ["load", "docker-image", "--name", "streamapp-lab", *TAGS] in _of_kind(stand_ins)
    assert f"kubectl apply --filename {LAB / 'manifests' / 'kafka.yaml'}" in stand_ins.calls()
    assert not own.exists()


def test_a_second_up_is_refused_and_nothing_is_made(cluster: KindCluster, stand_ins: StandIns) -> None:
    _up(stand_ins)
    with pytest.raises(LabError) as raised:
        cluster.up()
    assert raised.value.what == "kind cluster streamapp-lab: up already"
    assert _of_kind(stand_ins) == [["get", "clusters"]]


def test_reuse_loads_the_images_into_the_cluster_that_is_there(cluster: KindCluster, stand_ins: StandIns) -> None:
    _up(stand_ins)
    cluster.ensure_up()
    assert "create" not in [words[0] for words in _of_kind(stand_ins)]
    assert ["load", "docker-image", "--name", "streamapp-lab", *TAGS] in _of_kind(stand_ins)


def test_down_deletes_the_cluster_of_that_name_alone(cluster: KindCluster, stand_ins: StandIns) -> None:
    cluster.down()
    (delete,) = _of_kind(stand_ins)
    assert delete[:4] == ["delete", "cluster", "--name", "streamapp-lab"]
    assert delete[4] == "--kubeconfig"


def test_a_session_has_a_kubeconfig_of_its_own(cluster: KindCluster, stand_ins: StandIns) -> None:
    _up(stand_ins)
    with cluster.session() as session:
        kubeconfig = Path(session.environment["KUBECONFIG"])
        assert kubeconfig.read_text() == "kind: Config\n"
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        assert session.environment["KAFKA_BOOTSTRAP"] == EXTERNAL_BOOTSTRAP
        assert is_session(session.environment)
    assert not kubeconfig.exists()


def test_build_makes_the_images_and_starts_nothing(
    cluster: KindCluster, stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Settings] = []
    monkeypatch.setattr(kind, "build_for_docker", built.append)
    cluster.build()
    assert [settings.cluster for settings in built] == ["kind"]
    assert _of_kind(stand_ins) == []


def test_docker_is_asked_where_the_user_says_it_is(
    cluster: KindCluster, stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cluster.name == "kind"
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    stand_ins.put("docker", 'echo "no daemon at $DOCKER_HOST" >&2; exit 1')
    with pytest.raises(LabError) as raised:
        check_docker(stand_ins.path)
    assert raised.value.why == "no daemon at tcp://127.0.0.1:1"
