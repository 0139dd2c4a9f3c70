"""What the report says in plain words: one paragraph for each application, and one for the fleet. Pure."""

from collections.abc import Sequence
from typing import Final

from streamapp.analytics.gold.daily import SKEWED
from streamapp.analytics.report.amounts import UNKNOWN, count, duration, ratio, share
from streamapp.analytics.report.facts import App, Direction, direction
from streamapp.analytics.report.series import culprit
from streamapp.analytics.report.tables import Tables, shown

MOST_NAMES: Final = 3


def _steps(told: Direction, word: str) -> str:
    if not told.steps:
        return ""
    plural = word if told.steps == 1 else f"{word}s"
    if not told.converged:
        within = "as far as they were seen" if told.steps > 1 else "as far as it was seen"
    elif told.median_s is None:
        within = "fewer than half of them as far as they were seen"
    elif told.steps == 1:
        within = f"in {duration(told.median_s)}"
    else:
        within = f"half of them within {duration(told.median_s)}"
    return f"{told.converged} of {told.steps} {plural} converged, {within}"


def _scaling(up: Direction, down: Direction) -> str:
    parts = [part for part in (_steps(up, "scale-up"), _steps(down, "scale-down")) if part]
    return "; ".join(parts) if parts else "nothing was scaled"


def sentence(app: App) -> str:
    """An application in a few words: how its steps went, what held them, the longest gap, its autoscaler."""
    found = [f"{_scaling(app.up, app.down)}."]
    if app.held_s:
        worst = app.worst
        whom = culprit(worst.task, worst.ordinal)
        reason, seconds = max(app.held_by_reason.items(), key=lambda one: (one[1], one[0]))
        part = share(seconds / app.held_s)
        found.append(f"Pods were held for {duration(app.held_s)}, {part} of it for {reason}.")
        if worst.task is not None:
            found.append(f"Waited for longest: {whom}, {duration(worst.seconds)} of it.")
    elif app.down.steps:
        found.append("Nothing was held.")
    if app.gap is not None:
        found.append(f"The longest gap of a step was {app.gap.gap}.")
    elif any(step.row["moved_tasks"] for step in app.steps):
        found.append("Its gaps are not known.")
    turned = app.totals["reversals"]
    if turned:
        found.append(f"{turned} of {app.totals['events']} changes were taken back within the hour.")
    if app.imbalance is not None and app.imbalance > SKEWED:
        found.append(f"Its tasks are badly spread: the busiest process has {ratio(app.imbalance)} times the mean.")
    if app.totals["pid_changes"]:
        found.append(f"{app.totals['pid_changes']} process IDs changed on the same volume, which is a defect.")
    return " ".join(found)


def fleet_sentence(apps: Sequence[App], tables: Tables) -> str:
    """All of them."""
    steps = [row for app in apps for row in app.rows["s_scale_episode"]]
    held = sum(app.held_s for app in apps)
    gaps = [app for app in apps if app.gap is not None]
    found = [
        f"{count(len(apps))} application{'' if len(apps) == 1 else 's'} on {_days(tables)}: "
        f"{_scaling(direction(steps, 'up'), direction(steps, 'down'))}."
    ]
    if held:
        first = apps[0]
        most = f", most of all {first.title} ({duration(first.held_s)})" if len(apps) > 1 else ""
        found.append(f"Pods were held for {duration(held)} in all{most}.")
    if gaps:
        worst = max(gaps, key=lambda app: app.gap_s)
        told = worst.gap.gap if worst.gap else UNKNOWN
        found.append(f"The longest gap of a step was {told}, at {worst.title}.")
    found += _named("flapped", [app for app in apps if app.flaps])
    found += _named("had badly spread tasks", [app for app in apps if (app.imbalance or 0.0) > SKEWED])
    return " ".join(found)


def _named(what: str, apps: Sequence[App]) -> list[str]:
    """Those of which something is true, the first few by name."""
    names = [app.title for app in apps[:MOST_NAMES]]
    more = f" and {len(apps) - len(names)} more" if len(apps) > len(names) else ""
    return [f"{', '.join(names)}{more} {what}."] if names else []


def _days(tables: Tables) -> str:
    first, last = tables.days[0], tables.days[-1]
    return first if first == last else f"{len(tables.days)} days, {first} to {last}"


def span(apps: Sequence[App]) -> str:
    """From the first line to the last."""
    if not apps:
        return "no application was seen"
    return f"{shown(min(app.first for app in apps))} to {shown(max(app.last for app in apps))} UTC"


def caveats(tables: Tables) -> list[str]:
    """What the whole report does not know."""
    found = []
    if tables.days_left_out:
        every = len(tables.days) + tables.days_left_out
        found.append(f"{tables.days_left_out} earlier days are left out; --days {every} shows them.")
    if tables.unbuilt:
        found.append(f"{tables.unbuilt} days of the record are not in these figures yet: run the build again.")
    if tables.bad_lines:
        found.append(
            f"{count(tables.bad_lines)} of {count(tables.lines)} lines of the record are in quarantine "
            "(b_quarantine has them with rule and line)."
        )
    if tables.dropped:
        found.append(f"Recorders lost {count(tables.dropped)} lines on these days.")
    if tables.missing:
        found.append(
            f"{count(tables.missing)} lines are missing between what was read, by their numbers: a recorder lost them "
            "and says so, or their files (of a topic, their records) were removed before they were read."
        )
    return found
