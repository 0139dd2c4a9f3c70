"""The pages about certificates and Secrets: their commands make what is trusted, their values what may be read.

Without a cluster: openssl runs as the page has it, and the chart's schema and the resource read the rest.
"""

import json
import re
import ssl
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from lab.settings import REPOSITORY
from streamapp.agents.tls import trusting
from streamapp.api.validation.parse import StreamApp, parse

DOCS = REPOSITORY / "docs"
PAGE = (DOCS / "how-to" / "agent-tls.md").read_text()
SCHEMA = json.loads((REPOSITORY / "charts" / "streamapp-operator" / "values.schema.json").read_text())
SECRET = {"namespace": "orders", "name": "counter-agents"}
POD = "counter-0.counter.orders.svc"


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def values(text: str) -> list[dict[str, Any]]:
    """The blocks that are values of the chart."""
    found = [yaml.safe_load(block) for block in blocks(text, "yaml")]
    return [one for one in found if set(one) <= set(SCHEMA["properties"])]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page's openssl commands leave in an empty folder."""
    folder = tmp_path_factory.mktemp("certificate")
    (script,) = [block for block in blocks(PAGE, "sh") if "openssl req" in block]
    subprocess.run(("bash", "-euc", script), cwd=folder, check=True, capture_output=True)
    return folder


def shake_hands(made: Path, name: str) -> None:
    """Connect as the operator does to an agent that presents the certificate; raises if it is not trusted."""
    trusts = trusting((made / "ca.crt").read_text())
    # What newer versions of Python ask by default.
    trusts.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    presents = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    presents.load_cert_chain(made / "tls.crt", made / "tls.key")
    to_agent, to_operator = ssl.MemoryBIO(), ssl.MemoryBIO()
    operator = trusts.wrap_bio(to_operator, to_agent, server_hostname=name)
    agent = presents.wrap_bio(to_agent, to_operator, server_side=True)
    for side in (operator, agent, operator, agent):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert operator.getpeercert()


def test_openssl_as_on_the_page_makes_a_certificate_that_the_operator_trusts(made: Path) -> None:
    shake_hands(made, POD)


def test_it_is_valid_for_no_other_streamapp(made: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(made, "counter-0.counter.shop.svc")


def test_the_agent_can_read_its_key(made: Path) -> None:
    assert (made / "tls.key").read_text().startswith("-----BEGIN PRIVATE KEY-----")


def test_the_secret_has_every_file_that_is_read() -> None:
    (command,) = [block for block in blocks(PAGE, "sh") if "create secret" in block]
    assert f"{SECRET['name']} --namespace {SECRET['namespace']} --type=kubernetes.io/tls" in command
    for file in ("tls.crt", "tls.key", "ca.crt"):
        assert f"--from-file={file} " in command


def test_certificate_value_streamapp_and_commands_name_one_secret() -> None:
    certificate, value, streamapp = (yaml.safe_load(block) for block in blocks(PAGE, "yaml"))
    assert certificate["metadata"] == SECRET
    assert certificate["spec"]["secretName"] == SECRET["name"]
    assert value == {"agent": {"tlsSecrets": [SECRET]}}
    whole = yaml.safe_load(blocks((DOCS / "how-to" / "plain-main.md").read_text(), "yaml")[0])
    whole["metadata"] = {"name": "counter", "namespace": "orders", "uid": "u", "generation": 1, "resourceVersion": "1"}
    whole["metadata"]["creationTimestamp"] = "2026-11-21T12:00:00Z"
    whole["spec"] |= streamapp["spec"]
    parsed = parse(whole)
    assert isinstance(parsed, StreamApp), parsed
    assert parsed.spec.agent.tls is not None
    assert parsed.spec.agent.tls.secret_ref.name == SECRET["name"]


@pytest.mark.parametrize("page", ["how-to/agent-tls.md", "kafka-security.md"])
def test_the_chart_takes_the_values_of_a_page(page: str) -> None:
    found = values((DOCS / page).read_text())
    assert found
    for one in found:
        jsonschema.Draft7Validator({**SCHEMA, "required": []}).validate(one)


def test_the_command_that_looks_at_metrics_expects_the_name_in_their_certificate() -> None:
    section = (DOCS / "operations.md").read_text().split("\n## Metrics over TLS\n")[1].split("\n## ")[0]
    (certificate,) = (yaml.safe_load(block) for block in blocks(section, "yaml"))
    (name,) = certificate["spec"]["dnsNames"]
    (command,) = blocks(section, "sh")
    assert f"--resolve {name}:8443:127.0.0.1" in command
    assert f"https://{name}:8443/metrics" in command
