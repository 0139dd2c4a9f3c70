"""What Artifact Hub reads of the chart: the documented fields, true to definition and changelog, and no foreign image.

`ah lint` itself is not tried: the proxy of Go modules does not serve its module.
"""

from typing import Any, Literal

import jsonschema
import pytest
import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from lab.settings import REPOSITORY
from release.changelog import Section, sections
from release.definition import DEFINITION, read
from release.listings import artifact_hub
from release.listings.publication import Publication
from release.parts import chart

DIGESTS = {name: f"sha256:{digit * 64}" for name, digit in (("operator", "a"), ("seed", "b"), ("agent", "c"))}
NOTES = Section(
    "1.2.3",
    "2026-01-01",
    """### What it does

- **Scales down.** It waits for
  `copies` ([how](docs/a.md)).

### What it needs

- a broker

### Security

- A [page](docs/b.md) is closed.

### Breaking since 1.2.2

- `spec.x` is gone.
""",
)


class Strict(BaseModel):
    """A form whose unknown fields are an error."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Change(Strict):
    """An entry of `changes`."""

    kind: Literal["added", "changed", "deprecated", "removed", "fixed", "security"]
    description: str


class Image(Strict):
    """An entry of `images`."""

    name: str
    image: str
    whitelisted: bool = False


class SignKey(Strict):
    """`signKey`."""

    fingerprint: str
    url: str


class Definition(Strict):
    """An entry of `crds`."""

    kind: str
    version: str
    name: str
    displayName: str  # noqa: N815 -- the field's name
    description: str


FORMS: dict[str, TypeAdapter[Any]] = {
    "changes": TypeAdapter(list[Change]),
    "images": TypeAdapter(list[Image]),
    "signKey": TypeAdapter(SignKey),
    "crds": TypeAdapter(list[Definition]),
    "crdsExamples": TypeAdapter(list[dict[str, Any]]),
    "containsSecurityUpdates": TypeAdapter(bool),
    "prerelease": TypeAdapter(bool),
    "operator": TypeAdapter(bool),
    "operatorCapabilities": TypeAdapter(
        Literal["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"]
    ),
    "category": TypeAdapter(
        Literal[
            "ai-machine-learning",
            "database",
            "integration-delivery",
            "monitoring-logging",
            "networking",
            "security",
            "storage",
            "streaming-messaging",
            "skip-prediction",
        ]
    ),
    "license": TypeAdapter(Literal["Apache-2.0"]),
}
"""The documented annotations that this chart uses, by the form of what stands in them."""


def chart_of(publication: Publication) -> dict[str, Any]:
    """Chart.yaml as a release of today's commit has it, with its annotations read."""
    newest = next(it for it in sections((REPOSITORY / "CHANGELOG.md").read_text()) if it.day)
    told = artifact_hub.annotations(newest, DIGESTS, publication)
    text = (REPOSITORY / chart.CHART / "Chart.yaml").read_text()
    found: dict[str, Any] = yaml.safe_load(chart.with_annotations(text, told))
    return found


def annotations_of(publication: Publication) -> dict[str, Any]:
    told = chart_of(publication)["annotations"]
    return {name.removeprefix(artifact_hub.PREFIX): yaml.safe_load(text) for name, text in told.items()}


PUBLISHED = Publication("https://files.example/1", "registry.example/streamapp", "https://keys.example/a.asc", "A" * 40)


@pytest.mark.parametrize("publication", [Publication(), PUBLISHED], ids=["nowhere", "everywhere"])
def test_every_annotation_has_the_documented_form(publication: Publication) -> None:
    for name, value in annotations_of(publication).items():
        FORMS[name].validate_python(value)
    assert all(isinstance(text, str) for text in chart_of(publication)["annotations"].values())


def test_an_image_and_a_key_are_named_only_where_the_maker_serves_them() -> None:
    assert {"images", "signKey"} & set(annotations_of(Publication())) == set()
    assert annotations_of(PUBLISHED)["images"] == [
        {"name": name, "image": f"registry.example/streamapp/{name}@{digest}"} for name, digest in DIGESTS.items()
    ]
    assert annotations_of(PUBLISHED)["signKey"] == {"fingerprint": "A" * 40, "url": "https://keys.example/a.asc"}


def test_the_changes_are_the_entries_of_the_notes_in_plain_text() -> None:
    assert list(artifact_hub.changes(NOTES)) == [
        {"kind": "added", "description": "Scales down. It waits for copies."},
        {"kind": "security", "description": "A page is closed."},
        {"kind": "changed", "description": "spec.x is gone."},
    ]
    told = artifact_hub.annotations(NOTES, {}, Publication())
    assert told["artifacthub.io/containsSecurityUpdates"] == "true"
    assert told["artifacthub.io/prerelease"] == "false"


def test_the_notes_of_the_newest_release_give_changes() -> None:
    found = annotations_of(Publication())["changes"]
    assert len(found) > 10
    assert [each for each in found if "](" in each["description"] or "**" in each["description"]] == []


def test_the_definition_is_the_one_that_is_shipped_and_its_example_is_valid() -> None:
    definition = read(REPOSITORY / DEFINITION)
    (version,) = definition["spec"]["versions"]
    told = annotations_of(Publication())
    (shown,) = told["crds"]
    names = definition["spec"]["names"]
    assert (shown["name"], shown["kind"], shown["version"]) == (
        definition["metadata"]["name"],
        names["kind"],
        version["name"],
    )
    for example in told["crdsExamples"]:
        assert example["apiVersion"] == f"{definition['spec']['group']}/{version['name']}"
        jsonschema.validate(example, version["schema"]["openAPIV3Schema"])
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**example, "spec": {"replicas": "3"}}, version["schema"]["openAPIV3Schema"])


class Ignored(Strict):
    """An entry of `ignore`."""

    name: str
    version: str = ""


class Metadata(Strict):
    """`artifacthub-repo.yml`, without owners: the project names no persons."""

    repositoryID: str = ""  # noqa: N815 -- the field's name
    ignore: list[Ignored]


def test_the_file_about_the_repository_has_the_documented_fields() -> None:
    found = Metadata.model_validate(yaml.safe_load((REPOSITORY / "charts" / "artifacthub-repo.yml").read_text()))
    assert found == Metadata(ignore=[])
