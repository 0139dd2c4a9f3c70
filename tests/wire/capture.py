"""Writes the members of a running group, as the broker describes them, in the form of the files in `captured/`.

python -m tests.wire.capture BOOTSTRAP GROUP "what is running" > tests/wire/captured/NAME.json
"""

import asyncio
import json
import sys

from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.group.groups import RawGroup, describe


async def read(bootstrap: str, group_id: str) -> RawGroup:
    cluster = KafkaCluster(read_settings(bootstrap, {}), group_id)
    try:
        return await describe(cluster.group, deadline_seconds=10)
    finally:
        cluster.close()


def main(bootstrap: str, group_id: str, running: str) -> None:
    group = asyncio.run(read(bootstrap, group_id))
    members = [
        {
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "metadata": member.metadata.hex(" ", 4),
            "assignment": member.assignment.hex(" ", 4),
        }
        for member in group.members
    ]
    json.dump({"running": running, "state": group.state.value, "members": members}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
