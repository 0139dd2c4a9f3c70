"""What PromQL expressions and texts with labels name, read without Prometheus.

Prometheus itself parses them in `test_firing`, but takes minutes to build. This reads as much as the chart's rules use:
selectors with matchers, groupings, and labels in texts.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_SELECTOR = re.compile(r"\b((?:streamapp|kube)_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)(=~|!=|!~|=)"([^"]*)"')
_GROUPING = re.compile(r"\b(?:by|on) \(([^)]*)\)")
_IN_SUMMARY = re.compile(r"\$labels\.(\w+)")
_IN_LEGEND = re.compile(r"\{\{(\w+)\}\}")


class Selector(NamedTuple):
    """One metric in an expression."""

    metric: str
    matchers: tuple[tuple[str, str, str], ...]
    """Label, operator and value of each."""


def selectors(expression: str) -> Iterator[Selector]:
    """Every metric of an expression."""
    for metric, matchers in _SELECTOR.findall(expression):
        yield Selector(metric, tuple(_MATCHER.findall(matchers)))


def groupings(expression: str) -> frozenset[str]:
    """Every label by which an expression groups."""
    return frozenset(label.strip() for labels in _GROUPING.findall(expression) for label in labels.split(","))


def labels_in_summary(text: str) -> frozenset[str]:
    """The labels of an alert that its text names."""
    return frozenset(_IN_SUMMARY.findall(text))


def labels_in_legend(text: str) -> frozenset[str]:
    """The labels that a legend names."""
    return frozenset(_IN_LEGEND.findall(text))
