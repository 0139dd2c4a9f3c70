"""SECURITY-INSIGHTS.yml: up to date, of the specified form, and each statement about a file leads to one.

The specification is published as a CUE schema, which no package has; `Insights` has the fields of its version 2.2.0.
"""

import re
from datetime import date
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from lab.settings import REPOSITORY
from release.listings import security_insights
from release.listings.security_insights import NAME

Url = Annotated[str, StringConstraints(pattern=r"^https?://\S+$")]
Day = Annotated[str, AfterValidator(lambda text: date.fromisoformat(text).isoformat())]


class Form(BaseModel):
    """A part of the file; unknown fields are an error."""

    model_config = ConfigDict(
        extra="forbid", strict=True, alias_generator=lambda name: name.replace("_", "-"), populate_by_name=False
    )


class Contact(Form):
    """A person or a team."""

    name: str
    primary: bool
    affiliation: str | None = None
    email: str | None = None
    social: str | None = None


class Link(Form):
    """Anything that can be found."""

    uri: str
    comment: str


class Attestation(Form):
    """An in-toto attestation."""

    name: str
    location: Url
    predicate_uri: str
    comment: str | None = None


class Header(Form):
    """About the file itself."""

    last_reviewed: Day
    last_updated: Day
    schema_version: Annotated[str, StringConstraints(pattern=r"^[1-9]+\.[0-9]+\.[0-9]+$")]
    url: Url
    comment: str | None = None
    project_si_source: Url | None = None


class Repositories(Form):
    """One repository of the project."""

    name: str
    comment: str
    url: Url


class Reporting(Form):
    """How vulnerabilities are reported."""

    reports_accepted: bool
    bug_bounty_available: bool
    bug_bounty_program: Url | None = None
    contact: Contact | None = None
    comment: str | None = None
    policy: Url | None = None
    pgp_key: str | None = None
    in_scope: list[str] = []
    out_of_scope: list[str] = []


class ProjectPages(Form):
    """Pages of the project."""

    design: Url | None = None
    detailed_guide: Url | None = None
    code_of_conduct: Url | None = None
    quickstart_guide: Url | None = None
    release_process: Url | None = None
    support_policy: Url | None = None
    signature_verification: Url | None = None


class Project(Form):
    """The project as a whole."""

    name: str
    homepage: Url | None = None
    roadmap: Url | None = None
    funding: Url | None = None
    steward: Link | None = None
    administrators: Annotated[list[Contact], Field(min_length=1)]
    repositories: Annotated[list[Repositories], Field(min_length=1)]
    vulnerability_reporting: Reporting
    documentation: ProjectPages | None = None


class Use(Form):
    """When a tool runs."""

    adhoc: bool
    ci: bool
    release: bool


class Results(Form):
    """Where results are."""

    adhoc: Attestation | None = None
    ci: Attestation | None = None
    release: Attestation | None = None


class Tool(Form):
    """A tool that finds faults of security."""

    name: str
    type: Literal["fuzzing", "container", "secret", "SCA", "SAST", "other"]
    version: str | None = None
    comment: str | None = None
    rulesets: list[str]
    integration: Use
    results: Results


class Assessment(Form):
    """An assessment, by the project or by others."""

    comment: str
    name: str | None = None
    evidence: Url | None = None
    date: Day | None = None


class Assessments(Form):
    """All of them."""

    self: Assessment
    third_party: list[Assessment] = []


class Posture(Form):
    """What is done for security."""

    assessments: Assessments
    champions: list[Contact] = []
    tools: list[Tool] = []


class License(Form):
    """A licence by its SPDX expression."""

    url: Url
    expression: str


class RepositoryPages(Form):
    """Pages of the repository."""

    contributing_guide: Url | None = None
    dependency_management_policy: Url | None = None
    governance: Url | None = None
    review_policy: Url | None = None
    security_policy: Url | None = None


class Releases(Form):
    """How releases are made."""

    automated_pipeline: bool
    distribution_points: Annotated[list[Link], Field(min_length=1)]
    changelog: Url | None = None
    license: License | None = None
    attestations: list[Attestation] = []


class Repository(Form):
    """The repository in which the file lies."""

    status: Literal["active", "abandoned", "concept", "inactive", "moved", "suspended", "unsupported", "WIP"]
    url: Url
    accepts_change_request: bool
    accepts_automated_change_request: bool
    bug_fixes_only: bool | None = None
    no_third_party_packages: bool | None = None
    core_team: Annotated[list[Contact], Field(min_length=1)]
    license: License
    security: Posture
    documentation: RepositoryPages | None = None
    release: Releases | None = None


class Insights(Form):
    """The whole file."""

    header: Header
    project: Project
    repository: Repository


def found() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((REPOSITORY / NAME).read_text())
    return read


def test_it_is_up_to_date() -> None:
    day = security_insights.last_release(REPOSITORY)
    assert (REPOSITORY / NAME).read_text() == security_insights.text(day), "run `make generate`"


def test_it_has_the_form_of_the_specification() -> None:
    read = Insights.model_validate(found())
    assert read.header.schema_version == security_insights.SCHEMA
    assert sum(each.primary for each in read.project.administrators) == 1


def without(path: str) -> dict[str, Any]:
    """The file without a field."""
    whole = found()
    *parents, last = path.split("/")
    node = whole
    for parent in parents:
        node = node[parent]
    del node[last]
    return whole


@pytest.mark.parametrize(
    "path",
    ["header/url", "header/last-updated", "project/administrators", "repository/core-team", "repository/license"],
)
def test_a_field_that_the_specification_requires_is_missed(path: str) -> None:
    with pytest.raises(ValidationError, match=path.rpartition("/")[2]):
        Insights.model_validate(without(path))


def test_every_page_that_it_links_is_a_file() -> None:
    pages = re.findall(
        rf"{re.escape(security_insights.REPOSITORY)}/(?:blob|raw)/main/(\S+)", (REPOSITORY / NAME).read_text()
    )
    assert len(pages) > 10
    assert [page for page in pages if not (REPOSITORY / page).is_file()] == []
