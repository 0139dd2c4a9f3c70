"""The judges of all StreamApps of a story, and the rules between them: each judge is told what concerns its own.

What a process asks or does goes to the judge of the StreamApp that it is about; a disturbance, to all that it can
excuse. What is about several StreamApps at once is for `cross_judge`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.ids import ProcessId
from streamapp.kube.client.kinds import Key
from tests.kube.object_store import Request
from tests.prove.calls import Process, Switchboard
from tests.prove.fleet.requests import app_of
from tests.prove.group import Group, Run
from tests.prove.judge import Findings, Judge
from tests.prove.judge_ordinals import watch_ordinals
from tests.prove.judge_raises import Delay, During, during
from tests.prove.judge_words import WordJudge
from tests.prove.story import Disturbance

if TYPE_CHECKING:
    from tests.prove.fleet.cross_judge import CrossJudge

Json = dict[str, Any]


class Court:
    """Of one story; what an operator's calls are witnessed by."""

    def __init__(
        self, board: Switchboard, findings: Findings, judges: Mapping[Key, Judge], groups: Mapping[Key, Group]
    ) -> None:
        self.findings = findings
        self.wrongs, self.notes, self.visited = findings.wrongs, findings.notes, findings.visited
        self._judges, self._groups, self._board = judges, groups, board
        self._words = {key: WordJudge(judge) for key, judge in judges.items()}
        for judge in judges.values():
            watch_ordinals(judge)
        self.between: CrossJudge | None = None
        """Where there are several StreamApps."""
        self._only = next(iter(judges.values())) if len(judges) == 1 else None
        board.struck = self.struck

    @property
    def delays(self) -> tuple[Delay, ...]:
        """How long each raise took."""
        return tuple(delay for judge in self._judges.values() for delay in judge.raises.delays)

    def wrong(self, guarantee: int, what: str) -> None:
        """A guarantee does not hold, whosever."""
        next(iter(self._judges.values())).wrong(guarantee, what)

    def struck(self, one: Disturbance) -> None:
        """Something went wrong, or a user did something; of a single call only that StreamApp is excused."""
        about = self._board.about if _is_of_one_call(one) else None
        for key, judge in self._judges.items():
            if about in {None, key}:
                judge.raises.struck(one)

    def read(self, process: Process, request: Request, answer: Json, *, is_stale: bool) -> None:
        """The API server gave this answer."""
        judge = self._only or self._judge_of(app_of(request))
        if judge is not None:
            judge.read(process, request, answer, is_stale=is_stale)

    def looked(self, process: Process, group: Group) -> None:
        """The group was described."""
        for key, own in self._groups.items():
            if own is group:
                self._judges[key].looked(process)
                self._words[key].looked(process)

    def evicts(self, process: Process, group: Group, members: Sequence[MemberKey]) -> None:
        """LeaveGroup arrives at the brokers."""
        if self.between is not None:
            self.between.acts(process, group, "evicts members")
        self._of(group)[0].evicts(process, members)

    def rebalances(self, process: Process, group: Group) -> None:
        """A probe member joins."""
        if self.between is not None:
            self.between.acts(process, group, "triggers a rebalance")

    def announces(self, process: Process, group: Group, named: frozenset[ProcessId], to: Sequence[Run]) -> None:
        """Agents are told who leaves."""
        if self.between is not None:
            self.between.announces(process, group, named, to)
        for judge in self._of(group):
            judge.announces(process, named)

    def _of(self, group: Group) -> list[Judge]:
        return [self._judges[key] for key, own in self._groups.items() if own is group]

    def _judge_of(self, key: Key | None) -> Judge | None:
        return None if key is None else self._judges.get(key)


def _is_of_one_call(one: Disturbance) -> bool:
    """Whether it befalls one request or one event, and not the process or the world."""
    return during(one) in {During.ERROR, During.SILENCE} and one.what != "gap"
