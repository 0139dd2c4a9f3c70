"""One cluster of one broker for all tests that do not stop brokers, with the application `counter` on it."""

import re
from collections.abc import Iterator

import pytest

from lab.settings import REPOSITORY
from tests.brokers import secured
from tests.brokers.access import eventually
from tests.brokers.members import CHANGELOG, SOURCE
from tests.brokers.secured import PASSWORD, USER, Cluster, Right


def documented() -> list[Right]:
    """Give the rights that the commands of docs/kafka-rights.md grant for the application `counter`."""
    page = (REPOSITORY / "docs" / "kafka-rights.md").read_text()
    commands = re.findall(
        r"^acls --operation (\w+) +--(group|topic) (\S+)( --resource-pattern-type prefixed)?", page, re.MULTILINE
    )
    # The last one of the page is for the streams protocol, which this group does not speak.
    assert len(commands) == 5
    operations = {"Read": "READ", "Describe": "DESCRIBE", "DescribeConfigs": "DESCRIBE_CONFIGS"}
    return [
        Right(operations[operation], kind, SOURCE if name == "orders" else name, bool(prefixed))
        for operation, kind, name, prefixed in commands
    ]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a broker on which the user `operator` has exactly the documented rights."""
    with secured.running(tmp_path_factory.mktemp("broker")) as one:
        one.create(SOURCE, CHANGELOG)
        # A tail can only be read, or refused, where there is one.
        one.fill(CHANGELOG)
        one.set_password(USER, PASSWORD)
        one.tokens.clients[USER] = PASSWORD
        one.allow(USER, *documented())
        # The first look makes the topic of the offsets.
        assert not isinstance(eventually(one.at("ADMIN"), {}, seconds=60), str)
        yield one
