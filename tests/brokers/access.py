"""Ways to reach a secured cluster, as Secrets hold them, and the product's own look at the group over them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.apps.kafka_group import connect
from streamapp.controller.ports import ApplicationGroup
from streamapp.core.facts.group import GroupDescription, GroupUnreadable
from streamapp.kafka.secret_properties import SecretContent, client_properties
from tests.brokers.certificates import Issued
from tests.brokers.members import APPLICATION
from tests.brokers.secured import PASSWORD, USER, Cluster

T = TypeVar("T")
DEADLINE = 10.0
GOODBYE_SECONDS = 0.05
_MODULES = "org.apache.kafka.common.security"
Properties = Mapping[str, str]


def quoted(text: str) -> str:
    """Write an option's value as JAAS wants it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def plain(cluster: Cluster, password: str = PASSWORD, user: str = USER) -> Properties:
    """PLAIN over TLS."""
    login = f"{_MODULES}.plain.PlainLoginModule required username={quoted(user)} password={quoted(password)};"
    return {**over_tls(cluster, "SASL_SSL"), "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}


def scram(cluster: Cluster, bits: int = 512, password: str = PASSWORD, user: str = USER) -> Properties:
    """SCRAM over TLS."""
    login = f"{_MODULES}.scram.ScramLoginModule required username={quoted(user)} password={quoted(password)};"
    return {**over_tls(cluster, "SASL_SSL"), "sasl.mechanism": f"SCRAM-SHA-{bits}", "sasl.jaas.config": login}


def oauth(cluster: Cluster, secret: str = PASSWORD, **options: str) -> Properties:
    """OAUTHBEARER over TLS, by client credentials."""
    given = {"clientId": USER, "clientSecret": secret, "scope": "kafka", **options}
    login = " ".join(f"{name}={quoted(value)}" for name, value in given.items())
    return {
        **over_tls(cluster, "SASL_SSL"),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": cluster.tokens.url(),
        "sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required {login};",
    }


def mutual(cluster: Cluster, own: Issued) -> Properties:
    """TLS with a client's certificate."""
    return {
        **over_tls(cluster, "SSL"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": own.chain,
        "ssl.keystore.key": own.key,
    }


def over_tls(cluster: Cluster, protocol: str) -> Properties:
    """TLS as such."""
    return {"security.protocol": protocol, "ssl.truststore.certificates": cluster.authority.pem}


def group(bootstrap: str, properties: Properties) -> ApplicationGroup:
    """Connect as the controller does."""
    access = ClusterAccess(bootstrap, tuple(sorted(properties.items())), APPLICATION, "")
    return connect(access, DEADLINE)


def asked(bootstrap: str, properties: Properties, ask: Callable[[ApplicationGroup], Awaitable[T]]) -> T:
    """Ask over a connection of its own."""

    async def main() -> T:
        one = group(bootstrap, properties)
        try:
            return await ask(one)
        finally:
            one.close()
            # A server that ends the connection with its answer, as Tomcat does with a refusal, still says so over TLS.
            await asyncio.sleep(GOODBYE_SECONDS)

    return asyncio.run(main())


def looked(bootstrap: str, properties: Properties) -> GroupDescription | str:
    """Look at the group once; the reason if it cannot be read."""

    async def look(one: ApplicationGroup) -> GroupDescription | str:
        return await looked_over(one)

    return asked(bootstrap, properties, look)


async def looked_over(one: ApplicationGroup) -> GroupDescription | str:
    """Look at the group over an existing connection."""
    found = (await one.describe()).group
    return found.detail if isinstance(found, GroupUnreadable) else found


def eventually(bootstrap: str, properties: Properties, seconds: float = 10.0) -> GroupDescription | str:
    """Look until the group can be read: what an administrator changed reaches the broker's threads a little later."""
    until = time.monotonic() + seconds
    while True:
        found = looked(bootstrap, properties)
        if not isinstance(found, str) or time.monotonic() > until:
            return found
        time.sleep(0.2)


def of_secrets(given: Properties, **secrets: Mapping[str, bytes | str]) -> Properties:
    """Put properties together as the controller does, from Secrets by their names."""
    contents = [
        SecretContent(name, {key: value if isinstance(value, bytes) else value.encode() for key, value in data.items()})
        for name, data in secrets.items()
    ]
    return client_properties(contents, given)
