"""The StreamApps of docs/how-to against the resource, and the names in them against the launchers that are run."""

import re
import shlex
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from docs import generate
from lab.settings import REPOSITORY
from streamapp.api.v1alpha1.spec import RequestedSource
from streamapp.api.validation.parse import StreamApp, parse

NO_LAUNCHER = {"adopt", "agent-tls", "capacity", "conformance", "migrate-to-streams", "node-drains"}
"""Pages without a whole StreamApp: the command line makes it, or the page changes one that is there."""
PAGES = sorted(page for page in (REPOSITORY / "docs" / "how-to").glob("*.md") if page.stem not in NO_LAUNCHER)
WHOLE = [
    (page, text) for page in PAGES for text in re.findall(r"```yaml\n(apiVersion:.*?)```", page.read_text(), re.DOTALL)
]
STREAMS_PROTOCOL = REPOSITORY / "docs" / "streams-protocol.md"
LAUNCHERS = REPOSITORY / "examples" / "launchers"
NAMES = {
    "state.dir": ("STATE_DIR", "SPRING_KAFKA_STREAMS_STATEDIR", "kafka-streams.state.dir"),
    "application.id": ("APPLICATION_ID", "SPRING_KAFKA_STREAMS_APPLICATIONID", "QUARKUS_KAFKA_STREAMS_APPLICATION_ID"),
    "acceptable.recovery.lag": (
        *("STREAMS_ACCEPTABLE_RECOVERY_LAG", "SPRING_KAFKA_STREAMS_PROPERTIES_ACCEPTABLE_RECOVERY_LAG"),
        "kafka-streams.acceptable.recovery.lag",
    ),
    "num.standby.replicas": ("STREAMS_NUM_STANDBY_REPLICAS",),
}
"""How each launcher is told a setting."""


def settings(resource: StreamApp) -> dict[str, str]:
    """What the container gives the application, by Kafka's names."""
    (container,) = resource.spec.template["spec"]["containers"]
    given = {entry["name"]: entry["value"] for entry in container["env"]}
    options = shlex.split(given.get("JDK_JAVA_OPTIONS", ""))
    given |= dict(option.removeprefix("-D").split("=", 1) for option in options if option.startswith("-D"))
    return {name: given[key] for name, keys in NAMES.items() for key in keys if key in given}


def resource_of(text: str) -> StreamApp:
    document: dict[str, Any] = yaml.safe_load(text)
    document["metadata"] |= {"namespace": "shop", "uid": "u", "generation": 1, "resourceVersion": "1"}
    document["metadata"]["creationTimestamp"] = "2026-11-21T12:00:00Z"
    parsed = parse(document)
    assert isinstance(parsed, StreamApp), parsed
    return parsed


def test_every_page_has_one_whole_file() -> None:
    assert [page.stem for page, _ in WHOLE] == ["plain-main", "quarkus", "spring-boot"] == [page.stem for page in PAGES]


@pytest.mark.parametrize(("page", "text"), WHOLE, ids=lambda it: it.stem if isinstance(it, Path) else "")
def test_the_whole_file_is_a_streamapp_that_keeps_what_its_page_asks_for(page: Path, text: str) -> None:
    resource = resource_of(text)
    given = settings(resource)
    spec = resource.spec
    assert spec.state is not None
    assert given["state.dir"] == spec.state.mount_path
    assert given["application.id"] == spec.application_id
    assert int(given["acceptable.recovery.lag"]) == spec.learners.acceptable_recovery_lag
    assert spec.agent.enabled is (given.get("num.standby.replicas", "0") == "0")
    pod = spec.template["spec"]
    closing = re.search(r"CLOSE_TIMEOUT, value: (\d+)s|setCloseTimeout\((\d+)\)", page.read_text())
    if closing is not None:
        within = timedelta(seconds=int(closing[1] or closing[2]))
        assert within < timedelta(seconds=pod["terminationGracePeriodSeconds"])


def of_the_streams_protocol() -> str:
    (text,) = re.findall(r"```yaml\n(apiVersion:.*?)```", STREAMS_PROTOCOL.read_text(), re.DOTALL)
    assert isinstance(text, str)
    return text


def test_the_file_of_the_streams_protocol_has_what_its_page_asks_for() -> None:
    spec = resource_of(of_the_streams_protocol()).spec
    (container,) = spec.template["spec"]["containers"]
    assert spec.agent.enabled
    assert spec.learners.source is RequestedSource.ON_DEMAND
    assert container["env"] == [{"name": "STREAMS_GROUP_PROTOCOL", "value": "streams"}]


@pytest.mark.parametrize(
    ("page", "text"),
    [*WHOLE, (STREAMS_PROTOCOL, of_the_streams_protocol())],
    ids=lambda it: it.stem if isinstance(it, Path) else "",
)
def test_the_api_server_would_prune_and_refuse_nothing_of_it(page: Path, text: str) -> None:
    definition = yaml.safe_load(generate.DEFINITION.read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    errors = [
        error.message for error in jsonschema.Draft202012Validator(closed(schema)).iter_errors(yaml.safe_load(text))
    ]
    assert errors == [], page


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with unknown fields refused where the API server would drop them."""
    made = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes")}
    if "properties" in schema:
        made["properties"] = {name: closed(child) for name, child in schema["properties"].items()}
        made["additionalProperties"] = "x-kubernetes-preserve-unknown-fields" in schema
    if "metadata" in schema.get("properties", {}) and "kind" in schema["properties"]:
        made["properties"]["metadata"] = {}
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    if "items" in schema:
        made["items"] = {} if "containers" in str(schema) else closed(schema["items"])
    return made


def test_the_names_are_those_that_the_launchers_read() -> None:
    counter = (REPOSITORY / "examples" / "counter" / "README.md").read_text()
    for name in ("APPLICATION_ID", "BOOTSTRAP_SERVERS", "STATE_DIR", "CLOSE_TIMEOUT", "STREAMS_NUM_STANDBY_REPLICAS"):
        assert f"`{name}" in counter
        assert name in PAGES[0].read_text()
    quarkus = (LAUNCHERS / "quarkus" / "src/main/resources/application.properties").read_text()
    for line in (
        "quarkus.kafka-streams.application-id=",
        "quarkus.kafka-streams.bootstrap-servers=",
        "kafka-streams.state.dir=",
    ):
        assert line in quarkus
        assert f"`{line[:-1]}`" in PAGES[1].read_text()
    spring = next(LAUNCHERS.glob("spring-boot/src/main/java/**/Application.java")).read_text()
    assert "DEFAULT_STREAMS_CONFIG_BEAN_NAME" in spring
    assert "`defaultKafkaStreamsConfig`" in PAGES[2].read_text()
