"""The StreamApp that a StatefulSet becomes. Pure.

It keeps the pod template as it is and says nothing that Kubernetes filled in itself. Restarts are paused: the first one
is the user's decision.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import ADOPTED_FROM, API_VERSION, APP_LABEL, KIND
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.api.v1alpha1.spec import AccessMode
from streamapp.api.validation.parse import InvalidStreamApp, parse
from streamapp.cli.adoption import hints
from streamapp.cli.adoption.facts import Facts, claim_templates
from streamapp.cli.adoption.findings import Check, Finding
from streamapp.cli.adoption.origin import Origin

Json = dict[str, Any]
_SUPPORTED = {"accessModes", "resources", "storageClassName", "volumeMode"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the user says about the application; empty: as the pod template says."""

    application_id: str = ""
    bootstrap_servers: str = ""
    kafka_config_secrets: tuple[str, ...] = ()
    container: str = ""
    state_dir: str = ""


def application_container(facts: Facts, choices: Choices) -> Mapping[str, Any]:
    """The container that runs the application; empty where there is none of the chosen name."""
    containers = mappings(mapping(facts.template.get("spec")).get("containers"))
    named = [one for one in containers if not choices.container or one.get("name") == choices.container]
    return named[0] if named else {}


def draft_of(facts: Facts, choices: Choices) -> Json:
    """The StreamApp; what cannot be told from the StatefulSet is an empty text, which `findings_of` reports."""
    container = application_container(facts, choices)
    kafka: Json = {"bootstrapServers": choices.bootstrap_servers or hints.brokers(container).value or ""}
    if choices.kafka_config_secrets:
        kafka["configSecretRefs"] = [{"name": name} for name in choices.kafka_config_secrets]
    spec: Json = {
        "replicas": facts.replicas,
        "applicationId": choices.application_id or hints.hint(container, hints.APPLICATION_ID).value or "",
        "kafka": kafka,
        **({"container": choices.container} if choices.container else {}),
        **_state(facts, container, choices),
        "rollout": {"policy": "Paused"},
        "template": _template(facts),
    }
    metadata: Json = {"name": facts.name, "namespace": facts.namespace}
    if facts.statefulset is not None:
        metadata["annotations"] = {ADOPTED_FROM: Origin.of(facts.statefulset, facts.service).text}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def findings_of(facts: Facts, choices: Choices) -> Iterator[Finding]:
    """What is missing in the draft, or assumed."""
    draft, container = draft_of(facts, choices), application_container(facts, choices)
    spec = draft["spec"]
    if not spec["applicationId"]:
        yield Finding(Check.ApplicationIdUnknown, _found(hints.hint(container, hints.APPLICATION_ID)))
    if not spec["kafka"]["bootstrapServers"]:
        yield Finding(Check.BrokersUnknown, _found(hints.brokers(container)))
    protocol = hints.hint(container, hints.SECURITY_PROTOCOL)
    if (protocol.is_hidden or protocol.values - {"PLAINTEXT"}) and not choices.kafka_config_secrets:
        yield Finding(Check.CredentialsUnknown, f"security.protocol: {_found(protocol)}")
    if hints.hint(container, hints.STANDBYS).value in {None, "", "0"}:
        yield Finding(Check.StandbysUnknown, f"num.standby.replicas: {_found(hints.hint(container, hints.STANDBYS))}")
    if spec["applicationId"] and spec["kafka"]["bootstrapServers"]:
        invalid = invalidity(draft)
        if invalid:
            yield Finding(Check.ManifestInvalid, invalid)
    if "state" in spec and not choices.state_dir and hints.hint(container, hints.STATE_DIR).value is None:
        yield Finding(Check.StateDirAssumed, f"state.dir: {spec['state']['mountPath']}")


def claim_findings(facts: Facts, choices: Choices) -> Iterator[Finding]:
    """What a StreamApp cannot say about the volumes."""
    templates = claim_templates(facts.statefulset)
    if not templates:
        yield Finding(Check.NoVolume, f"StatefulSet {facts.title}")
    elif len(templates) > 1:
        names = ", ".join(str(mapping(one.get("metadata")).get("name")) for one in templates)
        yield Finding(Check.SeveralClaims, names)
    else:
        (template,) = templates
        unsupported = _unsupported(mapping(template.get("spec")))
        if unsupported:
            yield Finding(Check.ClaimUnsupported, unsupported)
        name = str(mapping(template.get("metadata")).get("name"))
        mounts = _mounts(application_container(facts, choices), name)
        if len(mounts) != 1 or mounts[0].get("subPath") or mounts[0].get("subPathExpr") or mounts[0].get("readOnly"):
            yield Finding(Check.ClaimNotMounted, f"volume {name}: {len(mounts)} mounts")


def invalidity(resource: Json) -> str:
    """Why the operator would refuse a StreamApp; empty where it would not."""
    metadata = {"uid": "0", "generation": 1, "creationTimestamp": "2000-01-01T00:00:00Z", **resource["metadata"]}
    found = parse({**resource, "metadata": metadata})
    return found.sentence if isinstance(found, InvalidStreamApp) else ""


def state_of(facts: Facts, container: Mapping[str, Any]) -> Json:
    """`spec.state` without its `stateDir`; empty where the StatefulSet has not exactly one claim template."""
    templates = claim_templates(facts.statefulset)
    if len(templates) != 1:
        return {}
    name, claim = str(mapping(templates[0].get("metadata")).get("name")), mapping(templates[0].get("spec"))
    mounts = _mounts(container, name)
    storage = mapping(mapping(claim.get("resources")).get("requests")).get("storage")
    made: Json = {"accessModes": list(claim.get("accessModes") or []), "resources": {"requests": {"storage": storage}}}
    if "storageClassName" in claim:
        made["storageClassName"] = claim["storageClassName"]
    return {
        "mountPath": str(mounts[0].get("mountPath")).rstrip("/") if mounts else "",
        "claimName": name,
        "volumeClaimTemplate": made,
    }


def _state(facts: Facts, container: Mapping[str, Any], choices: Choices) -> Json:
    state = state_of(facts, container)
    if not state:
        return {}
    folder = (choices.state_dir or hints.hint(container, hints.STATE_DIR).value or "").rstrip("/")
    return {"state": {**state, **({"stateDir": folder} if folder and folder != state["mountPath"] else {})}}


def _template(facts: Facts) -> Json:
    """The pod template, without what the API server and an earlier run of the command added."""
    template: Json = deepcopy(dict(facts.template))
    metadata = {key: value for key, value in mapping(template.get("metadata")).items() if value is not None}
    labels = {key: value for key, value in mapping(metadata.get("labels")).items() if key != APP_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _unsupported(claim: Mapping[str, Any]) -> str:
    """Name a field of a claim that a StreamApp does not have."""
    modes = list(claim.get("accessModes") or [])
    if len(modes) != 1 or modes[0] not in {mode.value for mode in AccessMode}:
        return f"accessModes: {', '.join(map(str, modes))}"
    if claim.get("volumeMode", "Filesystem") != "Filesystem":
        return f"volumeMode: {claim['volumeMode']}"
    resources = mapping(claim.get("resources"))
    fields = {*(set(claim) - _SUPPORTED), *(f"resources.{one}" for one in set(resources) - {"requests"})}
    return ", ".join(sorted(fields))


def _mounts(container: Mapping[str, Any], volume: str) -> list[Mapping[str, Any]]:
    return [one for one in mappings(container.get("volumeMounts")) if one.get("name") == volume]


def _found(found: hints.Hint) -> str:
    words = [*sorted(found.values), *(["a value from elsewhere"] if found.is_hidden else [])]
    return ", ".join(words) or "not in the environment or the arguments"
