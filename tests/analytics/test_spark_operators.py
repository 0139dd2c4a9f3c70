"""The examples for two Spark operators, in their structure: neither operator runs here.

The fields and their types are written down by hand from the definitions of the two projects: apache/spark-kubernetes-
operator, SparkApplication `spark.apache.org/v1` (August 2026), and kubeflow/spark-operator, ScheduledSparkApplication
`sparkoperator.k8s.io/v1beta2` (August 2026). Only fields that the examples use are here.
"""

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from lab.settings import REPOSITORY
from streamapp.analytics.cli import analytics

EXAMPLES = REPOSITORY / "examples" / "analytics"
TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
TEXTS: dict[str, Any] = {"type": "array", "items": TEXT}
CONF: dict[str, Any] = {"type": "object", "additionalProperties": TEXT}


def known(required: tuple[str, ...] = (), **fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required), "additionalProperties": False}


METADATA = known(("name", "namespace"), name=TEXT, namespace=TEXT)
APACHE = known(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "spark.apache.org/v1"},
    kind={"const": "SparkApplication"},
    metadata=METADATA,
    spec=known(
        ("runtimeVersions", "pyFiles"),
        pyFiles=TEXT,
        driverArgs=TEXTS,
        sparkConf=CONF,
        runtimeVersions=known(("sparkVersion",), sparkVersion=TEXT),
        applicationTolerations=known(
            resourceRetainPolicy={"enum": ["Always", "Never", "OnFailure"]},
            ttlAfterStopMillis=COUNT,
            restartConfig=known(restartPolicy={"enum": ["Always", "Never", "OnFailure", "OnInfrastructureFailure"]}),
        ),
    ),
)
POD: dict[str, dict[str, Any]] = {"cores": COUNT, "memory": TEXT}
KUBEFLOW = known(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "sparkoperator.k8s.io/v1beta2"},
    kind={"const": "ScheduledSparkApplication"},
    metadata=METADATA,
    spec=known(
        ("schedule", "template"),
        schedule=TEXT,
        concurrencyPolicy={"enum": ["Allow", "Forbid", "Replace"]},
        successfulRunHistoryLimit=COUNT,
        failedRunHistoryLimit=COUNT,
        template=known(
            ("driver", "executor", "mainApplicationFile", "sparkVersion", "type"),
            type={"enum": ["Java", "Python", "Scala", "R"]},
            pythonVersion={"enum": ["2", "3"]},
            mode={"enum": ["cluster", "client"]},
            sparkVersion=TEXT,
            image=TEXT,
            imagePullPolicy={"enum": ["Always", "IfNotPresent", "Never"]},
            mainApplicationFile=TEXT,
            arguments=TEXTS,
            sparkConf=CONF,
            restartPolicy=known(type={"enum": ["Never", "Always", "OnFailure"]}),
            driver=known((), serviceAccount=TEXT, **POD),
            executor=known((), instances=COUNT, **POD),
        ),
    ),
)


def example(name: str) -> dict[str, Any]:
    (found,) = yaml.safe_load_all((EXAMPLES / name).read_text())
    return dict(found)


def told(name: str) -> tuple[dict[str, Any], str, str, list[str]]:
    """The configuration, Spark's version, the program and its arguments."""
    spec = example(name)["spec"]
    if name.startswith("apache"):
        return spec["sparkConf"], spec["runtimeVersions"]["sparkVersion"], spec["pyFiles"], spec["driverArgs"]
    spec = spec["template"]
    return spec["sparkConf"], spec["sparkVersion"], spec["mainApplicationFile"], spec["arguments"]


@pytest.mark.parametrize(
    ("name", "schema"), [("apache-spark-operator.yaml", APACHE), ("kubeflow-spark-operator.yaml", KUBEFLOW)]
)
def test_an_example_has_the_fields_of_its_kind_and_no_others(name: str, schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(schema).validate(example(name))


@pytest.mark.parametrize("name", ["apache-spark-operator.yaml", "kubeflow-spark-operator.yaml"])
def test_an_example_runs_what_the_wheel_has_with_the_spark_it_is_made_for(name: str) -> None:
    conf, version, program, arguments = told(name)
    # The Dockerfile installs the wheel's packages under this folder.
    assert (REPOSITORY / "operator" / program.removeprefix("local:///opt/streamapp/")).is_file()
    assert "--target /opt/streamapp " in (EXAMPLES / "Dockerfile").read_text()
    (locked,) = re.findall(r'name = "pyspark"\nversion = "([0-9.]+)"', (REPOSITORY / "uv.lock").read_text())
    assert version == locked
    command = analytics.commands[arguments[0]]
    parsed = command.make_context(arguments[0], arguments[1:]).params
    # Driver and executors see the record and the tables under one path each, the one that is named.
    for role in ("driver", "executor"):
        claims = f"spark.kubernetes.{role}.volumes.persistentVolumeClaim"
        mounted = {conf[f"{claims}.{volume}.mount.path"] for volume in ("record", "tables")}
        assert mounted == {str(parsed["record"][0]), str(parsed["root"])}
        assert Path(conf[f"{claims}.tables.mount.path"]) == parsed["root"]
        assert f"{claims}.tables.mount.readOnly" not in conf


def test_the_page_names_every_file() -> None:
    page = (REPOSITORY / "docs" / "analytics.md").read_text()
    files = {path.name for path in EXAMPLES.iterdir()}
    assert set(re.findall(r"\.\./examples/analytics/([A-Za-z.-]+)", page)) == files
