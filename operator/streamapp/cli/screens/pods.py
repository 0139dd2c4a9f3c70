"""The pods on the status screen: one line each, with the Kafka Streams process, its volume and its tasks."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamapp.api.v1alpha1.status import AgentState, MemberStatus
from streamapp.cli.model.app_view import AppView
from streamapp.cli.model.phrases import counted

_AGENT_STYLES = {AgentState.ACTIVE: "", AgentState.INACTIVE: "yellow", AgentState.UNREACHABLE: "red"}
_WIDE = 110
"""The width for whole process IDs."""
_SHORT_ID = 8
_MOST_FAULTS = 3


def pods(view: AppView, width: int, most: int | None) -> RenderableType | None:
    """The pods, with one line for those beyond `most`; None if there are none."""
    members = view.status.members
    if not members:
        return None
    shown = _chosen(view, most)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("pod", justify="right", no_wrap=True)
    table.add_column("process", no_wrap=True)
    # Only this column can become narrower.
    table.add_column("volume", overflow="ellipsis")
    table.add_column("active", justify="right", no_wrap=True)
    table.add_column("copies", justify="right", no_wrap=True)
    has_agents = any(member.agent is not None for member in members)
    if has_agents:
        table.add_column("agent", no_wrap=True)
    table.add_column("", no_wrap=True)
    for member in shown:
        fate, style = fate_of(view, member)
        process = member.process_id or "unknown"
        table.add_row(
            str(member.ordinal),
            process if width >= _WIDE else process[:_SHORT_ID] if member.process_id else process,
            member.volume or "none",
            _count(member.active),
            _count(member.learners),
            *([_agent(member)] if has_agents else []),
            Text(fate, style=style),
        )
    return Group(table, *_left_out(view, members, shown), *_faults(members))


def fate_of(view: AppView, member: MemberStatus) -> tuple[str, str]:
    """What happens to a pod, with a style."""
    status, ordinal = view.status, member.ordinal
    going = status.scale_down
    if status.stateful_set_replicas is not None and ordinal >= status.stateful_set_replicas:
        return "leaving", "red"
    if going is not None and ordinal == going.next_ordinal:
        return "leaves next", "yellow"
    if going is not None and ordinal >= going.target:
        return "leaves", "yellow"
    if going is not None:
        return "stays", ""
    return ("idle", "dim") if _is_idle(member) else ("", "")


def _is_idle(member: MemberStatus) -> bool:
    return member.active == 0 and not member.learners


def _agent(member: MemberStatus) -> Text:
    return Text("?") if member.agent is None else Text(member.agent.value.lower(), style=_AGENT_STYLES[member.agent])


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _chosen(view: AppView, most: int | None) -> Sequence[MemberStatus]:
    """The pods to show, in order: those that leave before the lowest ones."""
    members = view.status.members
    if most is None or len(members) <= most:
        return members
    leaving = sorted(members, key=lambda member: (fate_of(view, member)[0] in {"", "stays", "idle"}, member.ordinal))
    return sorted(leaving[:most], key=lambda member: member.ordinal)


def _faults(members: Sequence[MemberStatus]) -> list[Text]:
    """Why pods do not run: the first of them in full."""
    told = [member.fault for member in members if member.fault is not None]
    lines = [Text(fault, style="red") for fault in told[:_MOST_FAULTS]]
    if len(told) > _MOST_FAULTS:
        lines.append(Text(f"and {counted(len(told) - _MOST_FAULTS, 'more pod')} with a fault", style="red"))
    return lines


def _left_out(view: AppView, members: Sequence[MemberStatus], shown: Sequence[MemberStatus]) -> list[Text]:
    ordinals = {member.ordinal for member in shown}
    others = [member for member in members if member.ordinal not in ordinals]
    lines = []
    if others:
        active, copies = sum(member.active or 0 for member in others), sum(member.learners or 0 for member in others)
        known = all(member.active is not None for member in others)
        tasks = f": {active:,} active, {copies:,} copies" if known else ""
        lines.append(Text(f"and {counted(len(others), 'more pod')}{tasks}", style="dim"))
    if view.status.replicas > len(members):
        unlisted = view.status.replicas - len(members)
        lines.append(Text(f"the status does not list {counted(unlisted, 'more pod')}", style="dim"))
    return lines
