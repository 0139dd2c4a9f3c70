"""What the threads of Kafka Streams were given, by their own logs: each assignment, however short it was in force.

The broker shows only what stands at the moment of a question. The lines are those of Kafka 4.2's `TaskManager`.
"""

import re
from dataclasses import dataclass

from streamapp.core.facts.ids import TaskId

TASK_MANAGER = "org.apache.kafka.streams.processor.internals.TaskManager"
OPTION = f"-Dorg.slf4j.simpleLogger.log.{TASK_MANAGER}=info"
"""Makes the demo application say what its threads are given."""
_ASSIGNMENT = re.compile(
    r"Handle new assignment with:\s+"
    r"New active tasks: \[(?P<actives>[^]]*)]\s+"
    r"New standby tasks: \[(?P<standbys>[^]]*)]\s+"
    r"Existing active tasks: \[(?P<actives_before>[^]]*)]"
)


@dataclass(frozen=True)
class GivenToThread:
    """One assignment of one thread."""

    actives_before: frozenset[TaskId]
    actives: frozenset[TaskId]
    standbys: frozenset[TaskId]

    @property
    def given_up(self) -> frozenset[TaskId]:
        """Actives that the thread has no more."""
        return self.actives_before - self.actives


def assignments(log: str) -> list[GivenToThread]:
    """Every assignment that a log shows, in its order."""
    return [
        GivenToThread(_tasks(found["actives_before"]), _tasks(found["actives"]), _tasks(found["standbys"]))
        for found in _ASSIGNMENT.finditer(log)
    ]


def _tasks(said: str) -> frozenset[TaskId]:
    return frozenset(TaskId.parse(one) for one in said.split(", ") if one)
