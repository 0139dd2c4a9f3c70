"""The Kafka client properties of an application: reads the Secrets that its StreamApp names.

Called by `reconcile.gather`: in each pass that does something, and at rest every two minutes. A read that failed says
nothing of a Secret, so what is known of it stays. Only an answer changes it: other content, no such Secret, or a right
that is missing.
"""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

from streamapp.api.v1alpha1.spec import Kafka
from streamapp.kafka.connection.errors import InvalidSettingsError
from streamapp.kafka.connection.settings import MECHANISM, PROTOCOL
from streamapp.kafka.secret_properties import SecretContent, client_properties
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, NotFoundError, RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import SECRETS


@dataclass(frozen=True, slots=True)
class SecretRead:
    """One Secret as last read, or why there is none."""

    content: SecretContent
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """The Kafka client properties of one application, or why there are none."""

    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Sorted; they can contain passwords."""
    fault: str | None = None
    secrets: Mapping[str, SecretRead] = field(default_factory=dict)
    """What they come from, by name."""
    named_by: Kafka | None = None
    """What the StreamApp said when they were read; None before."""


async def read_client_properties(
    client: KubeClient, namespace: str, kafka: Kafka, known: Mapping[str, SecretRead]
) -> ClientProperties:
    """Read all Secrets that the StreamApp names; `known` are those of the last pass."""
    names = dict.fromkeys(ref.name for ref in kafka.config_secret_refs)
    read = await asyncio.gather(*(read_secret(client, namespace, name, known.get(name)) for name in names))
    secrets = dict(zip(names, read, strict=True))
    fault = next((one.fault for one in read if one.fault is not None), None)
    if fault is not None:
        return ClientProperties(fault=fault, secrets=secrets, named_by=kafka)
    try:
        properties = client_properties([one.content for one in read], _given(kafka))
    except InvalidSettingsError as error:
        return ClientProperties(fault=str(error), secrets=secrets, named_by=kafka)
    return ClientProperties(tuple(sorted(properties.items())), secrets=secrets, named_by=kafka)


def _given(kafka: Kafka) -> Mapping[str, str]:
    given = {PROTOCOL: kafka.security_protocol, MECHANISM: kafka.sasl_mechanism}
    return {name: value.value for name, value in given.items() if value is not None}


async def read_secret(client: KubeClient, namespace: str, name: str, known: SecretRead | None) -> SecretRead:
    """Read one Secret by name; `known`, as it was last read, stays where the API server does not answer."""
    try:
        secret = await client.get(SECRETS, namespace, name)
    except KubeError as error:
        is_answer = isinstance(error, NotFoundError | RefusedError) and not isinstance(error, UnauthenticatedError)
        if known is not None and not is_answer:
            return known
        return SecretRead(SecretContent(name, {}), f"secret {name}: {error}")
    try:
        data = {key: base64.b64decode(text) for key, text in (secret.get("data") or {}).items()}
    except (binascii.Error, ValueError) as error:
        return SecretRead(SecretContent(name, {}), f"secret {name}: {error}")
    return SecretRead(SecretContent(name, data))
