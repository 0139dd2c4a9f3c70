"""The bundle by which OLM installs the operator: what the chart renders, and good in the eyes of OLM's validators."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.build.cache import Cache
from lab.errors import LabError
from lab.settings import REPOSITORY, Settings
from release import tools
from release.definition import DEFINITION, read
from release.listings import olm
from release.listings.publication import Publication
from release.parts import chart
from release.source import Source
from streamapp.kube.objects.rights import RIGHTS, RightScope
from tests.chart.rendering import CHART, helm, render

REGISTRY = "registry.example/streamapp"
DIGESTS = {name: f"sha256:{digit * 64}" for name, digit in (("operator", "a"), ("seed", "b"), ("agent", "c"))}
IMAGES = {name: Publication(registry=REGISTRY).image(name, digest) for name, digest in DIGESTS.items()}
VERSION = f"manifests/{olm.PACKAGE}.clusterserviceversion.yaml"

Json = dict[str, Any]


def bundle(**more: Json) -> dict[str, str]:
    """The files for images of a registry."""
    images = {"registry": REGISTRY, **{name: {"digest": digest} for name, digest in DIGESTS.items()}}
    objects = render({**olm.VALUES, **more, "images": images}).objects
    head = yaml.safe_load((CHART / "Chart.yaml").read_text())
    icon = (REPOSITORY / "charts" / "icon.svg").read_bytes()
    return olm.bundle(head, objects, IMAGES, icon, 1_700_000_000)


def version() -> Json:
    found: Json = yaml.safe_load(bundle()[VERSION])
    return found


@pytest.mark.chart
def test_the_rights_are_those_of_the_list_and_no_more() -> None:
    install = version()["spec"]["install"]["spec"]
    given = {
        (group, resource, verb)
        for part in ("clusterPermissions", "permissions")
        for account in install[part]
        for rule in account["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert given == {
        (right.group, right.path, verb)
        for right in RIGHTS
        if right.where is not RightScope.CLUSTER
        for verb in right.verbs
    }
    accounts = {each["serviceAccountName"] for part in ("clusterPermissions", "permissions") for each in install[part]}
    assert accounts == {install["deployments"][0]["spec"]["template"]["spec"]["serviceAccountName"]}


@pytest.mark.chart
def test_every_image_is_named_by_its_digest_and_listed() -> None:
    text = bundle()[VERSION]
    assert {each["name"]: each["image"] for each in version()["spec"]["relatedImages"]} == IMAGES
    assert {line.split()[-1] for line in text.splitlines() if f"{REGISTRY}/" in line} == set(IMAGES.values())


@pytest.mark.chart
def test_definition_and_deployment_are_the_charts_without_a_trace_of_helm() -> None:
    files = bundle()
    assert (
        yaml.safe_load(files["manifests/streamapps.streamapp.dev_customresourcedefinition.yaml"])["spec"]
        == (read(REPOSITORY / DEFINITION)["spec"])
    )
    assert [name for name, text in files.items() if "helm.sh/" in text or "managed-by: Helm" in text] == []
    assert "manifests/streamapp-operator_service.yaml" in files


@pytest.mark.chart
def test_an_object_without_a_place_in_a_bundle_is_an_error() -> None:
    with pytest.raises(LabError, match="the chart renders ValidatingAdmissionPolicy"):
        bundle(admission={"guard": {"enabled": True}})


@pytest.mark.chart
def test_a_packed_chart_is_rendered_as_the_one_in_the_clone(tmp_path: Path) -> None:
    source = Source(REPOSITORY, "c" * 40, 1_700_000_000, "0.1.0")
    packed = chart.pack(source, DIGESTS, {}, helm(), tmp_path, tmp_path)
    objects = chart.rendered(packed, {**olm.VALUES, "images": {"registry": REGISTRY}}, helm(), source, tmp_path)
    head = yaml.safe_load((CHART / "Chart.yaml").read_text())
    icon = (REPOSITORY / "charts" / "icon.svg").read_bytes()
    assert olm.bundle(head, objects, IMAGES, icon, 1_700_000_000) == bundle()


@pytest.mark.release
@pytest.mark.timeout(1800)
def test_the_validators_of_olm_accept_it_and_refuse_a_mistake(tmp_path: Path) -> None:
    settings = Settings.from_environment()
    program = tools.operator_verify(settings.versions, Cache(settings.cache))
    said = {}
    for place, change in (("good", ("", "")), ("broken", ("installModes:", "modes:"))):
        for name, text in bundle().items():
            path = tmp_path / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(*change) if name == VERSION else text)
        judged: list[str | Path] = ["--operatorhub_validate", "--object_validate", tmp_path / place]
        command: list[str | Path] = [program, "manifests", *judged]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = ran.stderr.splitlines()
        # The command asks a validator by its old name, and that one says so about itself.
        said[place] = [line for line in lines if 'The \\"operatorhub\\" validator is deprecated' not in line]
    assert said["good"] == []
    assert any("level=error" in line or "level=fatal" in line for line in said["broken"]), said
