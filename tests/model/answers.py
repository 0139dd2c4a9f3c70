"""What the model answers to a case, in the form of the Java reference, and both in one comparable form."""

from typing import Any

from streamapp.core.assignors import sticky
from streamapp.core.assignors.group import Placement, Task
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.simulator import stock
from streamapp.simulator.learner import assignment as learner
from streamapp.simulator.learner.draft import Announcement, LearnerSettings, Leaving
from tests.model.cases import Case, clients_of, tasks_of

Answer = dict[str, Any]


def _told(placement: Placement) -> Answer:
    return {"actives": sorted(map(str, placement.actives)), "standbys": sorted(map(str, placement.standbys))}


def stock_answer(case: Case, version: str) -> Answer:
    """The stock assignor of this version of Kafka Streams."""
    given = case["settings"]
    settings = stock.StockSettings(
        release=stock.Release.of(version),
        acceptable_recovery_lag=given["acceptableRecoveryLag"],
        max_warmup_replicas=given["maxWarmupReplicas"],
        num_standby_replicas=given["numStandbyReplicas"],
    )
    found = stock.assign(tasks_of(case), clients_of(case), settings)
    return {
        "placements": {str(process): _told(placed) for process, placed in found.placements.items()},
        "final": found.is_final,
    }


def learner_answer(case: Case, _version: str) -> Answer:
    """Our own assignor; it is the same for every version of Kafka Streams."""
    given, announced = case["settings"], case["announcement"]
    settings = LearnerSettings(
        acceptable_lag=given["acceptableLag"],
        standbys=given["standbys"],
        balance_learners=given["balanceLearners"],
        leaving_learners=given["leavingLearners"],
        tolerance=given["tolerance"],
        levels_standbys=given["levelsStandbys"],
        follow_up_millis=given["followUpMillis"],
    )
    announcement = Announcement(
        state=Leaving(announced["state"]),
        leaving=frozenset(map(ProcessId.parse, announced["leaving"])),
        is_eager=announced["eager"],
        expires_in_millis=announced["expiresInMillis"],
    )
    found = learner.assign(tasks_of(case), clients_of(case), settings, announcement, are_lags_known=case["lagsKnown"])
    follow_up = found.follow_up
    return {
        "placements": {str(process): _told(placed) for process, placed in found.assignment.placements.items()},
        "learners": sorted([str(it.task), str(it.process), it in found.waiting] for it in found.assignment.learners),
        "followUp": "none" if follow_up is None else f"{follow_up.purpose.value} {follow_up.millis}",
        "fellBack": "",
    }


def sticky_answer(case: Case, version: str) -> Answer:
    """The sticky assignor of this version of the broker."""
    tasks = [
        Task(TaskId(int(one["id"]), partition), one["stateful"])
        for one in case["subtopologies"]
        for partition in range(one["partitions"])
    ]
    members = [
        sticky.StreamsMember(
            id=one["id"],
            process=one["process"],
            actives=frozenset(map(TaskId.parse, one["actives"])),
            standbys=frozenset(map(TaskId.parse, one["standbys"])),
            offsets={TaskId.parse(task): offset for task, offset in one["offsets"].items()},
        )
        for one in case["members"]
    ]
    settings = sticky.StickySettings(release=sticky.BrokerRelease.of(version), num_standby_replicas=case["standbys"])
    return {"placements": {name: _told(placed) for name, placed in sticky.assign(tasks, members, settings).items()}}


def comparable(answer: Answer) -> Answer:
    """Sort what the reference gives in any order."""
    placed = {
        name: {kind: sorted(tasks) for kind, tasks in placement.items()}
        for name, placement in answer.get("placements", {}).items()
    }
    found = answer | {"placements": placed}
    return found | {"learners": sorted(answer["learners"])} if "learners" in answer else found
