"""The job before `helm uninstall`: what it runs, as whom, and how it is left out."""

import pytest

from streamapp.cli.adoption.facts import selects
from tests.chart.rendering import ALL_ON, render

pytestmark = [pytest.mark.chart, pytest.mark.timeout(300)]


def test_the_job_runs_with_the_rights_of_the_operator_and_no_others() -> None:
    found = render({})
    job = found.one("Job", "streamapp-operator-uninstall")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    pod, operator = job["spec"]["template"]["spec"], found.one("Deployment")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == operator["serviceAccountName"]
    (container,) = pod["containers"]
    assert (container["args"], container["image"]) == (["prepare-uninstall"], operator["containers"][0]["image"])
    assert container["securityContext"] == operator["containers"][0]["securityContext"]
    lease = {one["name"]: one for one in container["env"]}
    assert {"STREAMAPP_LEASE_NAMESPACE", "STREAMAPP_LEASE_NAME", "STREAMAPP_INSTALLATION"} <= lease.keys()


def test_its_pod_may_use_the_operators_network_and_is_none_of_the_operators_pods() -> None:
    found = render(ALL_ON)
    labels = found.one("Job", "streamapp-operator-uninstall")["spec"]["template"]["metadata"]["labels"]
    assert selects(found.one("NetworkPolicy")["spec"]["podSelector"], labels)
    assert not selects(found.one("Deployment")["spec"]["selector"], labels)
    assert not selects({"matchLabels": found.one("Service")["spec"]["selector"]}, labels)
    assert not selects(found.one("PodDisruptionBudget")["spec"]["selector"], labels)


def test_it_can_be_left_out() -> None:
    assert render({"uninstall": {"prepare": False}}).of("Job") == []


def test_nodes_are_watched_only_where_that_is_set() -> None:
    assert "ClusterRole/streamapp-operator-nodes-streamapp-system" not in {
        f"{one['kind']}/{one['metadata']['name']}" for one in render({}).of("ClusterRole")
    }
    role = render({"nodes": {"watch": True}, "watchNamespaces": ["blue"]}).one(
        "ClusterRole", "streamapp-operator-nodes-streamapp-system"
    )
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}]
