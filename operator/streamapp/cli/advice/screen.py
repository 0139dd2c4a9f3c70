"""What was learned, for a terminal: a line for each piece of advice, or a card for each of one StreamApp. Pure.

A command has a line of its own, which is never broken, so that a user can copy it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from streamapp.api.insight import Advice, AppInsight, Budget, Effect, EtaScore, Insight
from streamapp.cli.advice.learned import Learned, patch_command, share_used, verdict_of
from streamapp.cli.model.phrases import LABELS, counted
from streamapp.cli.text import durations
from streamapp.cli.text.sanitize import plain

_LONGEST_LINE = 100
"""Columns of running text: longer lines are hard to read."""
_UNKNOWN = "nothing is known yet: no run of the pipeline has read its record"


def overview_screen(
    insight: Insight, apps: Sequence[Learned], now: datetime, *, everywhere: bool = False
) -> RenderableType:
    """One line for each piece of advice; a StreamApp without advice has a line, too."""
    if not apps:
        return Text("No StreamApps.")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("name", overflow="fold", ratio=2)
    table.add_column("budget", no_wrap=True, justify="right")
    table.add_column("advice", overflow="fold", ratio=5)
    table.add_column("effect", overflow="fold", ratio=3)
    table.add_column("n", no_wrap=True, justify="right")
    table.add_column("days", no_wrap=True, justify="right")
    for one in apps:
        title = f"{one.namespace}/{one.name}" if everywhere else one.name
        for row in _rows(one.insight, insight):
            table.add_row(Text(title), *row)
            title = ""
    more = Text("Figures, what to look at first, and patches: kubectl streamapp advise NAME", style="dim")
    has_more = any(one.insight is not None and one.insight.advice for one in apps)
    return Group(_origin(insight, now), Text(""), table, *([Text(""), more] if has_more else []))


def _rows(found: AppInsight | None, insight: Insight) -> Iterator[tuple[Text, ...]]:
    if found is None:
        yield Text(""), Text(_unknown(insight), style="dim")
        return
    used = None if found.budget is None else share_used(found.budget)
    budget = Text("" if used is None else _percent(used), style="red" if used is not None and used > 1 else "")
    if not found.advice:
        yield budget, Text("nothing to advise", style="green"), Text(""), Text(""), Text(str(found.days))
    for nth, advice in enumerate(found.advice):
        effect = "" if advice.effect is None else _effect(advice.effect)
        figures = Text(str(advice.n)), Text(str(advice.days))
        yield Text("") if nth else budget, Text(_change(advice)), Text(effect), *figures


def app_screen(insight: Insight, learned: Learned, now: datetime) -> RenderableType:
    """All that was learned of one StreamApp."""
    title = Text.assemble((f"{learned.namespace}/{learned.name}", "bold"), "  ", _count(learned.insight, insight))
    parts: list[RenderableType] = [title, _origin(insight, now)]
    found = learned.insight
    if found is None:
        return Group(*parts)
    facts = {"budget": _budget(found.budget), "estimates": _score(found.eta)}
    if found.learned_eta is not None:
        facts["learned"] = _score(found.learned_eta.score)
    parts.append(_labelled(facts))
    for nth, advice in enumerate(found.advice, start=1):
        parts += [Text(""), Text(f"{nth}. {_change(advice)}", style="bold"), _labelled(_card(advice))]
        if advice.patch is not None:
            parts += [Text("   patch", style="dim"), _command(patch_command(advice.patch, learned.namespace))]
    return Group(*parts)


def _origin(insight: Insight, now: datetime) -> RenderableType:
    made = f"learned {durations.ago(insight.made_at, now)}, {durations.clock(insight.made_at)}"
    cluster = f" of cluster {plain(insight.cluster)}" if insight.cluster else ""
    return Text(f"{made}{cluster}, valid for {durations.short(insight.valid_until - now)}", style="dim")


def _unknown(insight: Insight) -> str:
    if not insight.left_out:
        return _UNKNOWN
    return f"nothing is known: {counted(insight.left_out, 'StreamApp')} had no room in the insight; read the report"


def _count(found: AppInsight | None, insight: Insight) -> str:
    if found is None:
        return _unknown(insight)
    if not found.advice:
        return f"nothing to advise: {counted(found.days, 'day')} were looked at, and no rule applies"
    return "1 piece of advice" if len(found.advice) == 1 else f"{len(found.advice)} pieces of advice"


def _change(advice: Advice) -> str:
    return plain(f"{advice.knob}: {advice.current} → {advice.proposed}")


def _card(advice: Advice) -> dict[str, str]:
    figures = f"n {advice.n:,}, {counted(advice.days, 'day')}"
    card = {"figures": f"{plain(advice.evidence)} ({figures})"}
    if advice.effect is not None:
        card["effect"] = _effect(advice.effect)
    if advice.vetoes:
        card["look first"] = "\n".join(map(plain, advice.vetoes))
    return card


def _effect(effect: Effect) -> str:
    mid, low, high = (f"{value:.3g}" for value in (effect.mid, effect.low, effect.high))
    span = "" if low == high else f" ({low} to {high})"
    return plain(f"{mid}{span} {effect.unit}")


def _budget(budget: Budget | None) -> str:
    if budget is None:
        return "no downtime is known"
    lost = f"{budget.month}: tasks stood for {_span(budget.lost_seconds)} at most"
    used = share_used(budget)
    if used is None or budget.budget_seconds is None:
        return f"{lost}; no budget, since the record has no objective or no number of tasks"
    return f"{lost}, {_percent(used)} of the month's {_span(budget.budget_seconds)}"


def _score(score: EtaScore | None) -> str:
    if score is None:
        return "not scored yet: too few scale-downs were estimated and seen to the end"
    way = "early" if score.median_error_seconds > 0 else "late"
    error = f"in the median {_span(abs(score.median_error_seconds))} too {way}"
    cover = (
        f"{_percent(score.cover)} of {counted(score.holds, 'hold')} on {counted(score.days, 'day')} were in the range"
    )
    return f"{cover}, {error}; {verdict_of(score)}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _span(seconds: float) -> str:
    return durations.fine(timedelta(seconds=min(seconds, 1e9)))


def _labelled(rows: dict[str, str]) -> RenderableType:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(style="dim", width=LABELS, no_wrap=True)
    table.add_column(overflow="fold")
    for label, words in rows.items():
        table.add_row(label, Text(words))
    return Constrain(table, _LONGEST_LINE)


def _command(text: str) -> Text:
    return Text(f"   {plain(text)}", style="bold", no_wrap=True, overflow="ignore")
