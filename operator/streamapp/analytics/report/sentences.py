"""The paragraphs of the report: one for each application, and one for the fleet. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from streamapp.analytics.gold.daily import SKEWED
from streamapp.analytics.report.amounts import UNKNOWN, count, duration, gap, ratio, share
from streamapp.analytics.report.facts import Blame, Direction, ReportedApp, direction
from streamapp.analytics.report.ledger import Downtime
from streamapp.analytics.report.series import blocker
from streamapp.analytics.report.tables import Tables, shown

MOST_NAMES: Final = 3


def _steps(steps: Direction, word: str) -> str:
    if not steps.steps:
        return ""
    plural = word if steps.steps == 1 else f"{word}s"
    if not steps.converged:
        within = " while observed"
    elif steps.median_s is None:
        within = " while observed, fewer than half"
    elif steps.steps == 1:
        within = f" in {duration(steps.median_s)}"
    else:
        within = f", half of them within {duration(steps.median_s)}"
    return f"{steps.converged} of {steps.steps} {plural} converged{within}"


def _scaling(up: Direction, down: Direction) -> str:
    parts = [part for part in (_steps(up, "scale-up"), _steps(down, "scale-down")) if part]
    return "; ".join(parts) if parts else "nothing was scaled"


def _downtime(lost: Downtime) -> list[str]:
    """What stood, and what stands still, first: it is what users notice."""
    parts = []
    if lost.open:
        words = "1 task was" if lost.open == 1 else f"{lost.open} tasks were"
        parts.append(f"{words} not running when the record ended.")
    if lost.n:
        cause, seconds = next(iter(lost.by_cause.items()))
        times = "once" if lost.n == 1 else f"{count(lost.n)} times"
        whole = gap(lost.at_most_s, lost.at_most_s - lost.at_least_s)
        parts.append(
            f"Tasks stood {times}, {whole} in total, {share(seconds / (lost.at_most_s or 1.0))} of it by {cause}; "
            f"the longest was task {lost.worst_task}, {duration(lost.worst_s)}."
        )
    return parts


def _blame(worst: Blame) -> list[str]:
    """The task whose copy would have ended holds sooner; nothing where many waited alike."""
    if worst.task is None:
        return []
    culprit = blocker(worst.task, worst.ordinal)
    if worst.sole_s >= 1:
        return [f"The task that blocked alone for longest was {culprit}, for {duration(worst.sole_s)}."]
    return [f"No task blocked alone; {culprit} was last in {worst.last} of the holds."] if worst.last > 1 else []


def _autoscaler(app: ReportedApp) -> list[str]:
    """The time in which an autoscaler could not scale, with its own word for why."""
    stood: dict[str, float] = defaultdict(float)
    for row in app.rows["s_autoscaler_interval"]:
        if row["cannot_act"]:
            stood[row["cannot_act"]] += (row["t_end"] - row["t_start"]).total_seconds()
    if not stood:
        return []
    return [f"The autoscaler could not act for {duration(sum(stood.values()))}: {', '.join(sorted(stood))}."]


def sentence(app: ReportedApp) -> str:
    """One application: its steps, the reasons of holds, the longest gap, its autoscaler."""
    parts = [*_downtime(app.downtime), f"{_scaling(app.up, app.down)}."]
    if app.held_s:
        reason, seconds = max(app.held_by_reason.items(), key=lambda item: (item[1], item[0]))
        part = share(seconds / app.held_s)
        parts.append(f"Pods were held for {duration(app.held_s)}, {part} of that time by {reason}.")
        parts += _blame(app.worst)
    elif app.down.steps:
        parts.append("No pod was held.")
    if app.gap is not None:
        parts.append(f"The longest gap of a step was {app.gap.gap}.")
    elif any(step.row["moved_tasks"] for step in app.steps):
        parts.append("The gaps of its steps are unknown.")
    reversals = app.totals["reversals"]
    if reversals:
        events = app.totals["events"]
        parts.append(f"{reversals} of {events} changes of the desired replicas were reversed within an hour.")
    parts += _autoscaler(app)
    if app.imbalance is not None and app.imbalance > SKEWED:
        times = ratio(app.imbalance)
        parts.append(f"Its tasks are badly spread: the busiest thread has {times} times those of the best spread.")
    if app.totals["pid_changes"]:
        parts.append(f"{app.totals['pid_changes']} process IDs changed on the same volume, which is a defect.")
    return " ".join(parts)


def fleet_sentence(apps: Sequence[ReportedApp], tables: Tables) -> str:
    """The whole fleet."""
    steps = [row for app in apps for row in app.rows["s_scale_episode"]]
    held = sum(app.held_s for app in apps)
    gaps = [app for app in apps if app.gap is not None]
    parts = [
        f"{count(len(apps))} application{'' if len(apps) == 1 else 's'} on {_days(tables)}: "
        f"{_scaling(direction(steps, 'up'), direction(steps, 'down'))}."
    ]
    lost = max(apps, key=lambda app: app.downtime.at_most_s)
    if lost.downtime.n:
        total = sum(app.downtime.at_most_s for app in apps)
        most = f", most of it in {lost.title} ({duration(lost.downtime.at_most_s)})" if len(apps) > 1 else ""
        parts.append(f"Tasks stood for at most {duration(total)} in total{most}.")
    parts += _named("had tasks that did not run at the end", [app for app in apps if app.downtime.open])
    if held:
        first = max(apps, key=lambda app: app.held_s)
        most = f", longest for {first.title} ({duration(first.held_s)})" if len(apps) > 1 else ""
        parts.append(f"Pods were held for {duration(held)} in total{most}.")
    if gaps:
        worst = max(gaps, key=lambda app: app.gap_s)
        longest = worst.gap.gap if worst.gap else UNKNOWN
        parts.append(f"The longest gap of a step was {longest}, of {worst.title}.")
    parts += _named("flapped", [app for app in apps if app.flaps])
    parts += _named("had badly spread tasks", [app for app in apps if (app.imbalance or 0.0) > SKEWED])
    return " ".join(parts)


def _named(what: str, apps: Sequence[ReportedApp]) -> list[str]:
    """A sentence about some applications, which names the first few."""
    names = [app.title for app in apps[:MOST_NAMES]]
    more = f" and {len(apps) - len(names)} more" if len(apps) > len(names) else ""
    return [f"{', '.join(names)}{more} {what}."] if names else []


def _days(tables: Tables) -> str:
    first, last = tables.days[0], tables.days[-1]
    return first if first == last else f"{len(tables.days)} days, {first} to {last}"


def span(apps: Sequence[ReportedApp]) -> str:
    """The time from the first line to the last."""
    if not apps:
        return "no application"
    return f"{shown(min(app.first for app in apps))} to {shown(max(app.last for app in apps))} UTC"


def caveats(tables: Tables) -> list[str]:
    """The limits of the whole report."""
    notes = []
    if tables.days_left_out:
        every = len(tables.days) + tables.days_left_out
        notes.append(f"{tables.days_left_out} earlier days are left out; --days {every} shows them.")
    if tables.damaged:
        first = tables.damaged[-1]
        many = "1 file" if len(tables.damaged) == 1 else f"{len(tables.damaged)} files"
        notes.append(f"{many} of the record could be read in part only. The newest: {first}.")
    if tables.is_mixed:
        notes.append("Silver is newer than gold: a build is at work or was killed. Run `streamapp-analytics build`.")
    if tables.unbuilt:
        notes.append(
            f"{tables.unbuilt} days of the record are not in these figures yet: run `streamapp-analytics build`."
        )
    if tables.bad_lines:
        notes.append(
            f"{count(tables.bad_lines)} of {count(tables.lines)} lines of the whole record are in quarantine "
            "(see b_quarantine for the rule and the line)."
        )
    if tables.dropped:
        notes.append(f"Recorders lost {count(tables.dropped)} lines on these days.")
    if tables.missing:
        notes.append(
            f"{count(tables.missing)} lines of the whole record are missing, by their numbers. "
            "A recorder lost and counted them, or their "
            "files or Kafka records were removed before an ingest."
        )
    return notes
