"""What could be a secret does not leave: whatever stands in the fields for it, and what looks like one elsewhere."""

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.cli.text.redaction import REMOVED, Redaction

SECRET = "hunter2-S3CR3T"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
values = st.text(string.ascii_letters + string.digits + "!#$%&()*+-./:<=>?@^_|~", min_size=6, max_size=40).map(
    lambda text: f"Zq{text}"
)


def redacted(text: str) -> str:
    return Redaction().text(text)


@pytest.mark.parametrize(
    "text",
    [
        f"password={SECRET}",
        f"ssl.keystore.password: {SECRET}",
        f'{{"clientSecret": "{SECRET} with a blank"}}',
        f"AWS_SECRET_ACCESS_KEY='{SECRET}'",
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}",
        f"https://user:{SECRET}@registry.example/v1",
        f'sasl.jaas.config=org.apache.kafka.PlainLoginModule required username="me" x="{SECRET}";',
        f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{SECRET}\n-----END RSA PRIVATE KEY-----\nafter",
        f"-----BEGIN PRIVATE KEY-----\ncut off in the middle {SECRET}",
    ],
)
def test_what_looks_like_a_secret_is_removed_from_a_text(text: str) -> None:
    assert SECRET not in redacted(text)
    assert REMOVED in redacted(text)


def test_a_token_is_removed_wherever_it_stands() -> None:
    assert redacted(f"got {JWT}, expired") == f"got {REMOVED}, expired"


@pytest.mark.parametrize(
    "text",
    [
        "hold counter/3: TasksNotRunning, 2 tasks of 6 (0_1, 0_4)",
        "2026-11-23T02:18:53.289Z INFO Counter - REBALANCING",
        'streamapp_agent_requests_total{namespace="demo",name="counter"} 12.0',
        "the passwords of this Secret are wrong",
        "configSecretRefs names counter-kafka, which does not exist",
    ],
)
def test_what_explains_a_state_stays(text: str) -> None:
    assert redacted(text) == text


def test_a_key_that_is_removed_takes_nothing_behind_it_along() -> None:
    text = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\nnext line"
    assert redacted(text) == f"{REMOVED}\nnext line"


POD: dict[str, Any] = {
    "metadata": {
        "name": "counter-0",
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": SECRET,
            "streamapp.dev/hold-record": '{"epoch": [1, 2]}',
            "vault.hashicorp.com/agent-inject-template": SECRET,
        },
        "managedFields": [{"manager": "helm", "fieldsV1": {"f:spec": SECRET}}],
    },
    "spec": {
        "containers": [
            {
                "name": "counter",
                "image": "your/counter",
                "args": ["--key", SECRET],
                "command": ["sh", "-c", SECRET],
                "env": [
                    {"name": "DB", "value": SECRET},
                    {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}},
                    {"name": "EMPTY", "value": ""},
                ],
                "readinessProbe": {"httpGet": {"httpHeaders": [{"name": "X-Key", "value": SECRET}], "port": 1}},
                "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
            }
        ],
        "volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"account": SECRET}}}],
    },
    "status": {"containerStatuses": [{"lastState": {"terminated": {"message": f"login failed, password={SECRET}"}}}]},
}


def test_of_an_object_the_names_and_references_are_kept_and_no_value() -> None:
    redaction = Redaction()
    found = redaction.document(POD)
    assert SECRET not in json.dumps(found)
    (container,) = found["spec"]["containers"]
    assert container["env"] == [
        {"name": "DB", "value": REMOVED},
        {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}},
        {"name": "EMPTY"},
    ]
    assert (container["image"], container["readinessProbe"]["httpGet"]["port"]) == ("your/counter", 1)
    assert found["metadata"]["annotations"]["streamapp.dev/hold-record"] == '{"epoch": [1, 2]}'
    assert found["metadata"]["managedFields"] == [{"manager": "helm"}]
    assert redaction.removed == 9


def test_a_document_that_is_given_is_not_changed() -> None:
    before = json.dumps(POD)
    Redaction().document(POD)
    assert json.dumps(POD) == before


@given(values, st.sampled_from(["env", "args", "command", "annotation", "header"]))
def test_no_value_survives_in_the_fields_for_secrets_whatever_it_looks_like(value: str, field: str) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "env": {"env": [{"name": "A", "value": value}]},
        "args": {"args": [value]},
        "command": {"livenessProbe": {"exec": {"command": ["x", value]}}},
        "annotation": {"annotations": {"a.example/b": value}},
        "header": {"httpGet": {"httpHeaders": [{"name": "A", "value": value}]}},
    }
    container = kinds[field]
    assert value not in json.dumps(Redaction().document({"spec": {"template": {"containers": [container]}}}))
