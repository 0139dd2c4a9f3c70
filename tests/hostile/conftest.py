"""What the tests of the agent in hostile JVMs share."""

import pytest

from tests.hostile import jvms


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> jvms.Parts:
    """Give the agent's jar, the application and Kafka Streams."""
    return jvms.build(tmp_path_factory.mktemp("host"))
