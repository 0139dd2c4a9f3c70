"""The paragraphs of the report: one for each application, and one for the fleet. Pure."""

from collections.abc import Sequence
from typing import Final

from streamapp.analytics.gold.daily import SKEWED
from streamapp.analytics.report.amounts import UNKNOWN, count, duration, ratio, share
from streamapp.analytics.report.facts import Direction, ReportedApp, direction
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


def sentence(app: ReportedApp) -> str:
    """One application: its steps, the reasons of holds, the longest gap, its autoscaler."""
    parts = [f"{_scaling(app.up, app.down)}."]
    if app.held_s:
        worst = app.worst
        reason, seconds = max(app.held_by_reason.items(), key=lambda item: (item[1], item[0]))
        part = share(seconds / app.held_s)
        parts.append(f"Pods were held for {duration(app.held_s)}, {part} of that time by {reason}.")
        if worst.task is not None:
            culprit = blocker(worst.task, worst.ordinal)
            parts.append(f"The task that blocked longest was {culprit}, for {duration(worst.seconds)}.")
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
    if app.imbalance is not None and app.imbalance > SKEWED:
        parts.append(f"Its tasks are badly spread: the busiest process has {ratio(app.imbalance)} times the mean.")
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
    if held:
        first = apps[0]
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
    if tables.unbuilt:
        notes.append(
            f"{tables.unbuilt} days of the record are not in these figures yet: run `streamapp-analytics build`."
        )
    if tables.bad_lines:
        notes.append(
            f"{count(tables.bad_lines)} of {count(tables.lines)} lines of the record are in quarantine "
            "(see b_quarantine for the rule and the line)."
        )
    if tables.dropped:
        notes.append(f"Recorders lost {count(tables.dropped)} lines on these days.")
    if tables.missing:
        notes.append(
            f"{count(tables.missing)} lines are missing, by their numbers. A recorder lost and counted them, or their "
            "files or Kafka records were removed before an ingest."
        )
    return notes
