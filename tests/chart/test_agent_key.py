"""The agents' key: an installation makes it once, no later one touches it; without a cluster none is made."""

import base64
from pathlib import Path

import pytest

from tests.chart.cluster import cluster
from tests.chart.rendering import ALL_ON, NAMESPACE, Json, render

pytestmark = [pytest.mark.chart, pytest.mark.timeout(300)]

NAME = "streamapp-agent-key"
THERE: Json = {NAME: {"keys": base64.b64encode(b"k" * 32).decode()}}


def secrets_on(folder: Path, secrets: Json | None, values: Json | None = None, major: int = 4) -> list[Json]:
    with cluster(folder, NAMESPACE, secrets) as config:
        return render(values or {}, major, config).of("Secret")


@pytest.mark.parametrize("major", [3, 4])
def test_the_first_installation_makes_a_key_that_the_operator_mounts(tmp_path: Path, major: int) -> None:
    (secret,) = secrets_on(tmp_path, {"sh.helm.release.v1.other.v1": {}}, major=major)
    assert (secret["metadata"]["name"], secret["metadata"]["namespace"]) == (NAME, NAMESPACE)
    assert len(base64.b64decode(secret["data"]["keys"])) == 64
    (volume,) = [one for one in next(render({}).pods())["volumes"] if one["name"] == "agent-key"]
    assert volume["secret"] == {"secretName": NAME, "optional": True}


@pytest.mark.parametrize("major", [3, 4])
def test_a_namespace_without_any_secret_is_no_rendering_without_a_cluster(tmp_path: Path, major: int) -> None:
    assert [secret["metadata"]["name"] for secret in secrets_on(tmp_path, {}, major=major)] == [NAME]


def test_the_key_is_no_part_of_the_release_so_that_no_upgrade_rollback_or_uninstall_touches_it(tmp_path: Path) -> None:
    (secret,) = secrets_on(tmp_path, {})
    assert secret["metadata"]["annotations"] == {"helm.sh/hook": "pre-install,pre-upgrade"}


@pytest.mark.parametrize("major", [3, 4])
def test_a_key_that_is_there_is_left_alone_whoever_made_it(tmp_path: Path, major: int) -> None:
    assert secrets_on(tmp_path, THERE, major=major) == []
    assert secrets_on(tmp_path, {NAME: {}}, major=major) == []


def test_the_secret_of_another_name_is_looked_up_by_that_name(tmp_path: Path) -> None:
    own = {"agent": {"keySecret": "own-key"}}
    assert [one["metadata"]["name"] for one in secrets_on(tmp_path, THERE, own)] == ["own-key"]
    assert secrets_on(tmp_path, {"own-key": {}}, own) == []


def test_who_makes_the_key_otherwise_switches_it_off(tmp_path: Path) -> None:
    assert secrets_on(tmp_path, {}, {"agent": {"createKey": False}}) == []


@pytest.mark.parametrize("major", [3, 4])
def test_who_makes_the_key_otherwise_needs_no_right_to_see_secrets(tmp_path: Path, major: int) -> None:
    assert secrets_on(tmp_path, None, {"agent": {"createKey": False}}, major) == []


@pytest.mark.parametrize("major", [3, 4])
def test_a_rendering_without_a_cluster_makes_no_key_since_each_would_make_another(major: int) -> None:
    assert [render(values, major).of("Secret") for values in ({}, ALL_ON)] == [[], []]
