"""The demo's manifests are used as they are, with names and sizes of one run put in."""

from typing import Any

import pytest
import yaml

from lab.scenarios.demo_application import MANIFESTS, DemoApplication, adapt

APPLICATION = DemoApplication("counter-7", {"EXACTLY_ONCE": "true"}, records=5000, rate=70)


def _documents(file: str) -> dict[str, dict[str, Any]]:
    return {d["kind"]: d for d in yaml.safe_load_all((MANIFESTS / file).read_text()) if d}


def _environment(container: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in container["env"]}


def test_the_application_gets_its_own_names_settings_and_size() -> None:
    stateful_set = _documents("statefulset.yaml")["StatefulSet"]
    before = _environment(stateful_set["spec"]["template"]["spec"]["containers"][0])
    adapt(stateful_set, APPLICATION, replicas=4)
    after = _environment(stateful_set["spec"]["template"]["spec"]["containers"][0])
    assert stateful_set["spec"]["replicas"] == 4
    assert after == before | {
        "APPLICATION_ID": "counter-7",
        "INPUT_TOPIC": "counter-7-input",
        "OUTPUT_TOPIC": "counter-7-output",
        "EXACTLY_ONCE": "true",
    }


@pytest.mark.parametrize(("file", "kind", "word", "figure"), [
    ("preload.yaml", "Job", "--records", "5000"),
    ("load.yaml", "Deployment", "--rate", "70"),
])  # fmt: skip
def test_the_loads_get_their_sizes(file: str, kind: str, word: str, figure: str) -> None:
    document = _documents(file)[kind]
    adapt(document, APPLICATION, replicas=None)
    arguments = [a for c in document["spec"]["template"]["spec"]["containers"] for a in c["args"]]
    assert arguments[arguments.index(word) + 1] == figure


def test_a_document_without_pods_is_left_alone() -> None:
    service = _documents("statefulset.yaml")["Service"]
    before = yaml.safe_dump(service)
    adapt(service, APPLICATION, replicas=2)
    assert yaml.safe_dump(service) == before
