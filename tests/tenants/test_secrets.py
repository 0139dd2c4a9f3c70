"""A tenant writes a Secret that costs much to read: the operator refuses it, and serves all others meanwhile."""

import asyncio
import base64
from pathlib import Path

import pytest

from tests.tenants.stage import a_stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PLAIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
SECRETS = {
    "login": (PLAIN | {"sasl.jaas.config": f"X.PlainLoginModule required {'a' * 40_000};"}, "has 40029 characters"),
    "protocol": ({"security.protocol": "x" * 1_000_000}, "security.protocol is"),
    "names": ({f"sasl.{number}.{'n' * 200}": "" for number in range(4_000)}, "use PEM text"),
}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_secrets_that_cost_much_to_read_cost_the_others_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_stage(tmp_path) as stage:
            for name, (properties, _) in SECRETS.items():
                stage.add_secret(name, **{key: encoded(text) for key, text in properties.items()})
                kafka = {"bootstrapServers": "127.0.0.1:1", "configSecretRefs": [{"name": name}]}
                stage.add(name, kafka=kafka)
            for replicas in range(2, 8):
                await stage.raised(replicas)
            for name, (_, why) in SECRETS.items():
                await stage.until_told(name, "KafkaReachable", why)
                assert len(stage.condition(name, "KafkaReachable")["message"]) < 2_000

    asyncio.run(main())
