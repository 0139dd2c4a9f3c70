"""What holds between StreamApps: nothing that an operator does for one lands on what is another's.

It knows the truth: who was first to have an application ID, which operator a StreamApp belongs to, and to which
StreamApps nothing has happened. It shares no rule with the product.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from streamapp.core.facts.agent_reports import AnnouncementState
from streamapp.core.facts.ids import ProcessId
from streamapp.kube.client.kinds import Key
from tests.kube.object_store import ObjectStore
from tests.prove.calls import Process, Switchboard
from tests.prove.fleet.requests import app_of_object
from tests.prove.group import Group, Run
from tests.prove.judge import Findings
from tests.prove.kubelet import Nodes
from tests.prove.streams.coordinator import StreamsGroup

Json = dict[str, Any]
GRANTED = {"statefulsets", "pods", "persistentvolumeclaims", "poddisruptionbudgets", "services"}
"""What an operator writes for a StreamApp that it serves; a status is written for every one."""
MOST_PODS = 8
"""No scene has as many."""


@dataclass(frozen=True, slots=True)
class Place:
    """What is true of one StreamApp whatever happens."""

    application_id: str
    installation: int
    nodes: Nodes
    group: Group
    is_quiet: bool


class CrossJudge:
    """One story's."""

    def __init__(
        self,
        store: ObjectStore,
        board: Switchboard,
        places: Mapping[Key, Place],
        findings: Findings,
        now: Callable[[], float],
    ) -> None:
        self._store, self._board, self._places, self._findings, self._now = store, board, places, findings, now
        self.restores = 0
        """Applications that may make learners at once; 0: all of them."""
        self._newest = 0
        """The number of the newest process: an older one that wakes up knows nothing of what that one began."""
        self._owners: dict[str, Key] = {}
        """By application ID, the StreamApp that was the first to have a StatefulSet and is still there."""
        for key in places:
            if store.get("statefulsets", key.namespace, key.name) is not None:
                self._owners.setdefault(places[key].application_id, key)
        self._raised: dict[int, int | None] = {}
        """By the identity of a streams group whose standbys are raised, what was set before."""
        for place in places.values():
            if isinstance(place.group, StreamsGroup):
                place.group.set_by_operator.append(partial(self._sets_standbys, place.group))
                place.group.set_by_hand.append(partial(self._set_by_hand, place.group))
        store.changed.append(self._changed)

    def owner(self, key: Key) -> Key | None:
        """The StreamApp that has the application ID of this one; None while none has it."""
        application_id = self._places[key].application_id
        found = self._owners.get(application_id)
        if found is not None and not self._is_there(found):
            del self._owners[application_id]
            return None
        return found

    def is_left(self, key: Key) -> bool:
        """Whether a rival of this one is being deleted, or its pods end: no other may begin in its group until then."""
        mine = self._places[key].application_id
        rivals = [other for other, place in self._places.items() if other != key and place.application_id == mine]
        return any(not self._is_there(one) and (self._is_listed(one) or self._has_pods(one)) for one in rivals)

    def acts(self, process: Process, group: Group, what: str) -> None:
        """A process does something to a group."""
        concerned = [place for place in self._places.values() if place.group is group]
        if all(place.installation != process.installation for place in concerned):
            self._wrong(f"process {process.number} {what} in a group of another operator")
        if all(place.is_quiet for place in concerned):
            self._wrong(f"process {process.number} {what} in the group of a StreamApp to which nothing has happened")

    def announces(self, process: Process, group: Group, named: frozenset[ProcessId], to: Sequence[Run]) -> None:
        """Agents in these containers are told who leaves: theirs alone, and of one StreamApp."""
        self.acts(process, group, "announces")
        self._newest = max(self._newest, process.number)
        if self.restores and process.number == self._newest:
            self._begins_to_learn(process, group, named)
        asked = {key for key, place in self._places.items() if any(run.id in place.nodes.truth.runs for run in to)}
        if len(asked) > 1:
            self._wrong(f"process {process.number} tells agents of {' and '.join(map(str, sorted(asked)))} at once")
        for key in asked:
            own = {run.process_id for run in self._places[key].nodes.truth.runs.values()}
            if not named <= own:
                self._wrong(f"process {process.number} tells agents of {key} that others' processes leave")

    def _begins_to_learn(self, process: Process, group: Group, named: frozenset[ProcessId]) -> None:
        """The budget of learners: what begins is one of so many; what had begun goes on, whatever happens."""
        if named & _told(group) or not _learners_needed(group, named):
            return
        self._findings.visited.add("budget")
        self._takes_a_place(process, group)

    def _takes_a_place(self, process: Process, group: Group) -> None:
        """Learners begin in a group, of either protocol."""
        self._findings.notes["learners begun"] += 1
        there = (place for key, place in self._places.items() if self._is_there(key))
        others = {id(place.group): place for place in there if place.group is not group}
        learning = [one for one in others.values() if self._is_learning(one.group)]
        if len(learning) >= self.restores:
            names = " and ".join(sorted(one.application_id for one in learning))
            self._wrong(f"process {process.number} begins learners while {names} has not ended its own")

    def _is_learning(self, group: Group) -> bool:
        if isinstance(group, StreamsGroup):
            return id(group) in self._raised
        return _learners_needed(group, _told(group))

    def _sets_standbys(self, group: StreamsGroup, process: Process, standbys: int | None) -> None:
        """A process raises a group's standbys, which is how learners begin there, or puts them back."""
        self.acts(process, group, "sets the standbys")
        self._newest = max(self._newest, process.number)
        # What another hand wrote as well may be put back; it is no raise, whatever was set before.
        is_raise = (standbys or 0) > (group.truth.setting or 0)
        if standbys == self._raised.get(id(group), group.truth.setting) or not is_raise:
            self._raised.pop(id(group), None)
        elif id(group) not in self._raised:
            self._raised[id(group)] = group.truth.setting
            if self.restores and process.number == self._newest:
                self._findings.visited.add("budget of standbys")
                self._takes_a_place(process, group)

    def _set_by_hand(self, group: StreamsGroup, _: int | None) -> None:
        """What another hand sets is no raise of an operator any more."""
        self._raised.pop(id(group), None)

    def _changed(self, plural: str, body: Json, before: Json | None) -> None:
        metadata = (body or before or {})["metadata"]
        key = app_of_object(plural, metadata["namespace"], metadata["name"])
        place = None if key is None else self._places.get(key)
        if key is None or place is None:
            return
        writer = self._board.writer
        if writer is not None:
            self._written(writer, plural, key, place)
            self._owned(plural, key, body)
        if plural == "statefulsets" and body and before is None and self.owner(key) is None:
            self._owners[place.application_id] = key

    def _written(self, writer: Process, plural: str, key: Key, place: Place) -> None:
        what = f"process {writer.number} writes {plural} of {key}"
        if place.installation != writer.installation:
            self._wrong(f"{what}, which belongs to another operator")
        if plural not in GRANTED:
            return
        if place.is_quiet:
            self._wrong(f"{what}, to which nothing has happened")
        owner = self.owner(key)
        if owner is not None:
            self._findings.visited.add("rivals" if self._rivals(key) else "several")
        if owner not in {None, key} and self._is_there(key):
            self._wrong(f"{what}, although {owner} has its application ID")

    def _owned(self, plural: str, key: Key, body: Json) -> None:
        """What is made for a StreamApp is owned by that one, and carries its name."""
        app = self._store.get("streamapps", key.namespace, key.name)
        if plural != "statefulsets" or not body or app is None:
            return
        owners = [owner["uid"] for owner in body["metadata"].get("ownerReferences", ())]
        if owners != [app["metadata"]["uid"]]:
            self._wrong(f"the StatefulSet {key} is owned by {owners}, and not by its StreamApp")

    def _rivals(self, key: Key) -> bool:
        application_id = self._places[key].application_id
        others = (one for one, place in self._places.items() if place.application_id == application_id and one != key)
        return any(map(self._is_there, others))

    def _is_listed(self, key: Key) -> bool:
        return self._store.get("streamapps", key.namespace, key.name) is not None

    def _has_pods(self, key: Key) -> bool:
        return any(self._store.get("pods", key.namespace, f"{key.name}-{ordinal}") for ordinal in range(MOST_PODS))

    def _is_there(self, key: Key) -> bool:
        app = self._store.get("streamapps", key.namespace, key.name)
        return app is not None and "deletionTimestamp" not in app["metadata"]

    def _wrong(self, what: str) -> None:
        self._findings.wrongs.append(f"{self._now():.2f} s: between StreamApps: {what}")


def _told(group: Group) -> frozenset[ProcessId]:
    """The processes of which an agent of the group knows that they leave."""
    agents, time = group.truth.agents, group.time()
    runs = {member.run.id for member in group.listed(alive=True) if member.run is not None}
    known = (agents[run] for run in runs if run in agents)
    return frozenset().union(*(one.named for one in known if one.state(time) is AnnouncementState.SET))


def _learners_needed(group: Group, named: frozenset[ProcessId]) -> bool:
    """Whether a task of a process that leaves has no caught-up copy on one that stays."""
    group.advance()
    truth, alive = group.truth, group.listed(alive=True)
    copies = {
        task
        for member in alive
        if member.process_id not in named and member.run is not None
        for task in member.standby
        if truth.lag(member.run.volume, task) <= truth.shape.limit
    }
    return any(member.active - copies for member in alive if member.process_id in named)
