"""The part of the screen about pods: one line each, with the Kafka Streams process, its volume and its tasks."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamapp.api.v1alpha1.status import MemberStatus
from streamapp.cli.model.agents_told import STYLES
from streamapp.cli.model.app_view import View
from streamapp.cli.model.phrases import counted

_WIDE = 110
"""From so many columns on a process ID is shown whole."""
_SHORT_ID = 8


def pods(view: View, width: int, most: int | None) -> RenderableType | None:
    """Show the pods, those that are left out in one line; None where there are none."""
    members = view.status.members
    if not members:
        return None
    shown = _chosen(view, most)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("pod", justify="right", no_wrap=True)
    table.add_column("process", no_wrap=True)
    # The one column that may become narrower.
    table.add_column("volume", overflow="ellipsis")
    table.add_column("active", justify="right", no_wrap=True)
    table.add_column("copies", justify="right", no_wrap=True)
    has_agents = any(member.agent is not None for member in members)
    if has_agents:
        table.add_column("agent", no_wrap=True)
    table.add_column("", no_wrap=True)
    for member in shown:
        fate, style = fate_of(view, member)
        process = member.process_id or "not known"
        table.add_row(
            str(member.ordinal),
            process if width >= _WIDE else process[:_SHORT_ID] if member.process_id else process,
            member.volume or "none",
            _count(member.active),
            _count(member.learners),
            *([_agent(member)] if has_agents else []),
            Text(fate, style=style),
        )
    return Group(table, *_left_out(view, members, shown))


def fate_of(view: View, member: MemberStatus) -> tuple[str, str]:
    """Say what becomes of a pod, with a style."""
    status, ordinal = view.status, member.ordinal
    going = status.scale_down
    if status.stateful_set_replicas is not None and ordinal >= status.stateful_set_replicas:
        return "going", "red"
    if going is not None and ordinal == going.next_ordinal:
        return "goes next", "yellow"
    if going is not None and ordinal >= going.target:
        return "leaves", "yellow"
    if going is not None:
        return "stays", ""
    return ("idle", "dim") if _is_idle(member) else ("", "")


def _is_idle(member: MemberStatus) -> bool:
    return member.active == 0 and not member.learners


def _agent(member: MemberStatus) -> Text:
    return Text("?") if member.agent is None else Text(member.agent.value.lower(), style=STYLES[member.agent])


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _chosen(view: View, most: int | None) -> Sequence[MemberStatus]:
    """Where not all can be shown: those about whom something is to be said, then the lowest; in order."""
    members = view.status.members
    if most is None or len(members) <= most:
        return members
    leaving = sorted(members, key=lambda one: (fate_of(view, one)[0] in {"", "stays", "idle"}, one.ordinal))
    return sorted(leaving[:most], key=lambda one: one.ordinal)


def _left_out(view: View, members: Sequence[MemberStatus], shown: Sequence[MemberStatus]) -> list[Text]:
    ordinals = {member.ordinal for member in shown}
    others = [member for member in members if member.ordinal not in ordinals]
    lines = []
    if others:
        active, copies = sum(one.active or 0 for one in others), sum(one.learners or 0 for one in others)
        known = all(one.active is not None for one in others)
        tasks = f": {active:,} active, {copies:,} copies" if known else ""
        lines.append(Text(f"and {counted(len(others), 'more pod')}{tasks}", style="dim"))
    if view.status.replicas > len(members):
        unlisted = view.status.replicas - len(members)
        lines.append(Text(f"{counted(unlisted, 'pod')} beyond these are not listed in the status", style="dim"))
    return lines
