"""What of the agents' words counts, and which of them belong together.

An agent is believed while its word is young, from the container that runs now, and the newest that this JVM gave: an
answer that comes late is known by its sequence number. Two views of all agents, one later than the other, take the
place of two joins. Used by `case`, `learner_source` and `announcement`; the gatherer keeps the words with `remember`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from streamapp.core.facts.agent_reports import AgentReply, AgentReport, AgentSilent, AgentsSeen, EndsAfter
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable
from streamapp.core.facts.policy import Timing
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import Pod
from streamapp.core.reasons import Reason

UNAVAILABLE = frozenset({Reason.AgentKeyMissing, Reason.AgentUntrusted, Reason.AgentSilent, Reason.AgentReportsPending})
"""Why nothing is known by agents."""

KEPT_FOR = timedelta(seconds=15)

STARTING_FOR = timedelta(minutes=1)
"""How long a container may run before its agent's silence means more than that the JVM starts, on a busy node."""


@dataclass(frozen=True, slots=True)
class AgentsUnavailable:
    """Why the agents as a whole are not to be gone by."""

    reason: Reason
    """One of `UNAVAILABLE`."""
    detail: str


@dataclass(frozen=True, slots=True)
class AgentView:
    """One report of every pod that runs, with the ends that were read after the last of them."""

    reports: Mapping[Ordinal, AgentReport]
    ends: EndOffsets | EndsUnreadable

    @property
    def as_of(self) -> datetime:
        """No report is older."""
        return min(report.as_of for report in self.reports.values())


def remember(
    seen: AgentsSeen | None,
    now: datetime,
    words: Iterable[AgentReply],
    ends: EndsAfter | None = None,
    *,
    no_key: str = "",
) -> AgentsSeen:
    """What was heard after one more round of questions.

    Args:
        seen: What was heard before.
        now: The time.
        words: One of each pod that was asked; whoever is not among them is forgotten.
        ends: What was read after the answers were in, if anything was.
        no_key: Why the operator can ask no agent, if it has no key.
    """
    before = AgentsSeen() if seen is None else seen
    kept = {word.ordinal: _kept((word, *before.words.get(word.ordinal, ())), now) for word in words}
    known = before.ends if ends is None else (ends, *before.ends)
    young = tuple(one for number, one in enumerate(known) if number < 2 or _is_young(one, now))
    return AgentsSeen(kept, young, no_key)


def fresh(snapshot: Snapshot, timing: Timing) -> Mapping[Ordinal, AgentReport]:
    """The newest report of each pod that runs, where it is young enough."""
    newest = {pod.ordinal: _reports(snapshot, pod)[:1] for pod in _running(snapshot)}
    return {ordinal: found[0] for ordinal, found in newest.items() if found and _is_fresh(found[0], snapshot, timing)}


def silence(snapshot: Snapshot, timing: Timing) -> AgentsUnavailable | None:
    """Why not every pod that runs has an agent to go by; None: each was heard twice, and just now."""
    pods = _running(snapshot)
    if snapshot.agents is not None and snapshot.agents.no_key:
        return AgentsUnavailable(Reason.AgentKeyMissing, snapshot.agents.no_key)
    if not pods:
        return AgentsUnavailable(Reason.AgentSilent, "no pod runs")
    young = fresh(snapshot, timing)
    starting: Pod | None = None
    for pod in pods:
        report = young.get(pod.ordinal)
        missing = _why_silent(snapshot, pod) if report is None else _what_it_leaves_out(report)
        if missing and _is_starting(snapshot, pod):
            starting = starting or pod
        elif missing:
            reason = Reason.AgentUntrusted if _is_untrusted(snapshot, pod) else Reason.AgentSilent
            return AgentsUnavailable(reason, f"ordinal {pod.ordinal}: {missing}")
    if starting is not None:
        return AgentsUnavailable(Reason.AgentReportsPending, f"ordinal {starting.ordinal} has just begun to run")
    once = [pod.ordinal for pod in pods if len(_reports(snapshot, pod)) == 1]
    return AgentsUnavailable(Reason.AgentReportsPending, f"ordinal {once[0]} was heard once") if once else None


def has_lost_one(snapshot: Snapshot, timing: Timing) -> bool:
    """Tell whether an agent has been silent for so long that it has forgotten whatever it was told."""
    watched_since = min((reading.ended_at for reading in snapshot.readings), default=snapshot.now)
    for pod in _running(snapshot):
        said, since = _reports(snapshot, pod), pod.container.known_since or snapshot.now
        last = said[0].as_of if said else max(since, watched_since)
        if snapshot.now - last > timing.announcement:
            return True
    return False


def views(snapshot: Snapshot, timing: Timing) -> tuple[AgentView, ...]:
    """What all agents said last, and what they said before that; empty where they are not to be gone by."""
    if snapshot.agents is None or silence(snapshot, timing) is not None:
        return ()
    reports = {pod.ordinal: _reports(snapshot, pod) for pod in _running(snapshot)}
    ends = snapshot.agents.ends
    newest = {ordinal: found[0] for ordinal, found in reports.items()}
    measured = _measured(reports, ends, snapshot, timing)
    # Ends can be older than the newest word, but no word counts that a newer one of the same JVM takes back.
    is_taken_back = measured is not None and any(taken_back(measured.reports[one], newest[one]) for one in newest)
    latest = AgentView(newest, _NO_ENDS) if measured is None or is_taken_back else measured
    before = {
        ordinal: _before(found, latest.reports[ordinal].as_of - timing.report_gap) for ordinal, found in reports.items()
    }
    known = {
        ordinal: report
        for ordinal, report in before.items()
        if report is not None and snapshot.now - report.as_of <= timing.reading_window
    }
    return (latest, AgentView(known, _ends_after(known, ends))) if len(known) == len(reports) else (latest,)


def said_until(snapshot: Snapshot, until: datetime) -> Mapping[Ordinal, AgentReport]:
    """The newest report of each pod that runs, of those that are not later than this; who was not heard is left out."""
    found = {pod.ordinal: _before(_reports(snapshot, pod), until) for pod in _running(snapshot)}
    return {ordinal: report for ordinal, report in found.items() if report is not None}


def taken_back(before: AgentReport, now: AgentReport) -> str:
    """Say what of an earlier report does not hold any more, as the end of a sentence; empty if all of it does.

    A higher position takes nothing back: a copy that was caught up still is. A lower one does, or one that is not told
    any more: the copy was lost and begins anew, without a rebalance and in the same JVM.
    """
    if _identity(before) != _identity(now):
        return f"tasks of ordinal {now.ordinal} have changed since"
    later = {(task.id, task.is_active): task.positions for task in now.tasks or ()}
    for task in before.tasks or ():
        for store, position in task.positions.items():
            told = later[task.id, task.is_active].get(store)
            if told is None or told < position:
                return f"{task.id} on ordinal {now.ordinal}: {store} was at {position} and is at {told}"
    return ""


def _identity(report: AgentReport) -> tuple[object, ...]:
    tasks = None
    if report.tasks is not None:
        tasks = frozenset((task.id, task.is_active, task.state) for task in report.tasks)
    return report.pod_uid, report.incarnation, report.process_id, report.is_ours, tasks


_NO_ENDS = EndsUnreadable("the ends were not read since the agents spoke")


def _running(snapshot: Snapshot) -> tuple[Pod, ...]:
    return tuple(pod for pod in snapshot.workload.pods if pod.is_running)


def _reports(snapshot: Snapshot, pod: Pod) -> tuple[AgentReport, ...]:
    """What this JVM said, by its own count, newest first."""
    words = () if snapshot.agents is None else snapshot.agents.words.get(pod.ordinal, ())
    since = pod.container.known_since
    own = [
        word
        for word in words
        if isinstance(word, AgentReport) and word.pod_uid == pod.uid and since is not None and word.as_of >= since
    ]
    of_this_jvm = {word.sequence: word for word in reversed(own) if word.incarnation == own[0].incarnation}
    return tuple(of_this_jvm[sequence] for sequence in sorted(of_this_jvm, reverse=True))


def _is_fresh(report: AgentReport, snapshot: Snapshot, timing: Timing) -> bool:
    return timedelta(0) <= snapshot.now - report.as_of <= timing.fact_age


def _why_silent(snapshot: Snapshot, pod: Pod) -> str:
    if snapshot.agents is None:
        return "it was not asked yet"
    word = snapshot.agents.latest(pod.ordinal)
    if isinstance(word, AgentSilent):
        return word.why
    if word.pod_uid != pod.uid:
        return "the last answer came from another pod"
    return f"it last looked at {word.as_of:%H:%M:%S}"


def _is_untrusted(snapshot: Snapshot, pod: Pod) -> bool:
    word = None if snapshot.agents is None else snapshot.agents.latest(pod.ordinal)
    return isinstance(word, AgentSilent) and word.is_untrusted


def _is_starting(snapshot: Snapshot, pod: Pod) -> bool:
    """Tell whether a pod with an agent runs for so short a time that its JVM may not have got as far as to report."""
    since = pod.container.known_since
    is_young = since is not None and snapshot.now - since < STARTING_FOR
    return is_young and pod.has_agent is True and not _is_untrusted(snapshot, pod)


def _what_it_leaves_out(report: AgentReport) -> str:
    if report.tasks is None:
        return "it could not ask its instance for tasks"
    return "it does not know its process ID" if report.process_id is None else ""


def _measured(
    reports: Mapping[Ordinal, Sequence[AgentReport]], ends: Sequence[EndsAfter], snapshot: Snapshot, timing: Timing
) -> AgentView | None:
    """The newest reports that ends were read after, if they are young enough still."""
    last = next((one for one in ends if isinstance(one.ends, EndOffsets)), None)
    if last is None:
        return None
    found = {ordinal: _known_before(said, last.began_at) for ordinal, said in reports.items()}
    known = {
        ordinal: report
        for ordinal, report in found.items()
        if report is not None and _is_fresh(report, snapshot, timing)
    }
    return AgentView(known, _ends_after(known, ends)) if len(known) == len(reports) else None


def _before(reports: Sequence[AgentReport], at: datetime) -> AgentReport | None:
    return next((report for report in reports if report.as_of <= at), None)


def _known_before(reports: Sequence[AgentReport], at: datetime) -> AgentReport | None:
    return next((report for report in reports if report.known_by <= at), None)


def _ends_after(reports: Mapping[Ordinal, AgentReport], ends: Sequence[EndsAfter]) -> EndOffsets | EndsUnreadable:
    """The first ends that were asked for when all of these had been given.

    An answer can be slow: its look can then be younger than the request less the age that the agent says.
    """
    given = max((report.known_by for report in reports.values()), default=None)
    later = [one.ends for one in ends if given is not None and one.began_at >= given]
    return next((one for one in reversed(later) if isinstance(one, EndOffsets)), _NO_ENDS)


def _kept(words: tuple[AgentReply, ...], now: datetime) -> tuple[AgentReply, ...]:
    """Silence is remembered once, reports for a while; of a look that is answered twice the newest answer.

    At rest the look before it is old: an answer that repeats a look must not take its place.
    """
    looks = [(word.incarnation, word.sequence) if isinstance(word, AgentReport) else None for word in words]
    first = {look: word for look, word in zip(looks, words, strict=True) if isinstance(word, AgentReport)}
    once = [
        _as_first_heard(word, first.get(looks[number]))
        for number, word in enumerate(words)
        if number == 0 or looks[number] not in {None, *looks[:number]}
    ]
    return tuple(
        word
        for number, word in enumerate(once)
        if number < 2 or (isinstance(word, AgentReport) and now - word.as_of <= KEPT_FOR)
    )


def _as_first_heard(word: AgentReply, first: AgentReport | None) -> AgentReply:
    """The newest answer of a look, which was over when the first one was in."""
    if not isinstance(word, AgentReport) or first is None or first.heard_at == word.heard_at:
        return word
    return replace(word, heard_at=first.heard_at)


def _is_young(one: EndsAfter, now: datetime) -> bool:
    return now - one.began_at <= KEPT_FOR
