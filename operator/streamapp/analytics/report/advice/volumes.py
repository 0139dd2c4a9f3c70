"""Advice about what restores slowly: a node, a volume or a task, beside its siblings. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from streamapp.analytics.report.advice.facts import Facts
from streamapp.analytics.report.advice.model import Advice, Effect
from streamapp.analytics.report.amounts import rate
from streamapp.analytics.report.rows import Row

LEAST_STINTS: Final = 5
"""Of a volume or task, and of its siblings together, before its rate is compared."""
SLOW_SHARE: Final = 0.5
"""Of the siblings' median, below which a rate is slow."""
LEAST_ON_NODE: Final = 2
"""Slow volumes on a node, none of them sound, before the node is named and not they."""


def compared(rows: Sequence[Row], scope: str) -> dict[str, list[tuple[Row, float]]]:
    """The profiles with enough stints by volume or task, each with the median of its siblings."""
    by_subtopology: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["scope"] == scope:
            by_subtopology[row["subtopology"]].append(row)
    found: dict[str, list[tuple[Row, float]]] = defaultdict(list)
    for siblings in by_subtopology.values():
        for row in siblings:
            others = [one for one in siblings if one is not row]
            if row["n_stints"] >= LEAST_STINTS and sum(one["n_stints"] for one in others) >= LEAST_STINTS:
                found[row[scope]].append((row, median(one["rate_p50"] for one in others)))
    return found


def is_slow(cases: Sequence[tuple[Row, float]]) -> bool:
    """Whether one of the profiles is slow."""
    return any(row["rate_p50"] < SLOW_SHARE * usual for row, usual in cases)


def slow_siblings(facts: Facts) -> Iterator[Advice]:
    """A volume, or a task, that restores at less than half of the rate of its siblings."""
    rows = facts.rows["g_restore_profile"]
    # One cause: where a volume is slow, the tasks that were restored on it are slow for it.
    for scope in ("volume", "task"):
        slow = {name: cases for name, cases in sorted(compared(rows, scope).items()) if is_slow(cases)}
        yield from (_slow(facts, scope, name, cases) for name, cases in slow.items())
        if slow:
            return


def _slow(facts: Facts, scope: str, name: str, every: Sequence[tuple[Row, float]]) -> Advice:
    cases = [(row, usual) for row, usual in every if row["rate_p50"] < SLOW_SHARE * usual]
    worst, usual = min(cases, key=lambda case: case[0]["rate_p50"] / case[1])
    spent = [usual / row["rate_p50"] for row, usual in cases]
    node = worst.get("node") or ""
    other = f"delete the claim after its tasks have caught-up copies elsewhere, or cordon {node or 'its node'}"
    return Advice(
        knob=f"{scope} {name}",
        current=f"{rate(worst['rate_p50'])} slots/s in subtopology {worst['subtopology']}",
        proposed=other if scope == "volume" else "look at the keys and the store of this task",
        evidence=f"its siblings restore {rate(usual)} slots/s in the median",
        days=facts.days,
        n=sum(row["n_stints"] for row, _ in cases),
        effect=Effect(min(spent), median(spent), max(spent), "times faster restores there"),
        vetoes=("the rate can be limited by a broker's quota for this client",) if scope == "volume" else (),
        node=node,
    )


def with_nodes(found: Mapping[str, Sequence[Advice]], profiles: Mapping[str, Sequence[Row]]) -> dict[str, list[Advice]]:
    """The advice of all applications, with one for a node in place of those for its volumes if all of them are slow.

    Args:
        found: by application.
        profiles: rows of `g_restore_profile` by application.
    """
    slow: dict[str, list[str]] = defaultdict(list)
    sound: set[str] = set()
    for title, rows in profiles.items():
        for volume, cases in compared(rows, "volume").items():
            node = cases[0][0].get("node")
            if node and is_slow(cases):
                slow[node].append(f"{title} {volume}")
            elif node:
                sound.add(node)
    named = {node: volumes for node, volumes in slow.items() if len(volumes) >= LEAST_ON_NODE and node not in sound}
    return {
        title: [_of_node(one, named[one.node]) if one.node in named else one for one in pieces]
        for title, pieces in found.items()
    }


def _of_node(volume: Advice, volumes: Sequence[str]) -> Advice:
    return replace(
        volume,
        knob=f"node {volume.node}",
        proposed=f"cordon {volume.node} and let its pods come up elsewhere",
        evidence=f"{volume.evidence}; all {len(volumes)} volumes there are slow: {', '.join(sorted(volumes))}",
    )
