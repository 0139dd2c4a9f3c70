"""The answers of `explain`, each beside its question. Pure.

A command has a line of its own, which is never broken, so that a user can copy it.
"""

import re
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from streamapp.cli.model.explain import Explanation, Question
from streamapp.cli.screens.status import STYLES

_LONGEST_LINE = 100
"""Columns of running text: longer lines are hard to read."""
_LABELS = 11
_COMMAND = re.compile(r"(.*): `(kubectl [^`]+)`")


def explain_screen(explanation: Explanation) -> RenderableType:
    """Show the questions that have answers."""
    view = explanation.view
    title = Text.assemble((view.name, "bold"), "  ", (view.state.value.upper(), f"bold {STYLES[view.state]}"))
    parts: list[RenderableType] = [title]
    for question, sentences in explanation.answers.items():
        prose = [sentence for sentence in sentences if _COMMAND.fullmatch(sentence) is None]
        table = Table.grid(padding=(0, 0, 0, 0))
        table.add_column(style="dim", width=_LABELS, no_wrap=True)
        table.add_column()
        table.add_row(question.value, Group(*map(Text, prose)))
        parts += [Text(""), Constrain(table, _LONGEST_LINE)]
        parts += _commands(sentences) if question is Question.YOU_CAN else ()
    return Group(*parts)


def _commands(sentences: tuple[str, ...]) -> Iterator[RenderableType]:
    for sentence in sentences:
        match = _COMMAND.fullmatch(sentence)
        if match is not None:
            yield Constrain(Padding(Text(f"{match[1]}:"), (1, 0, 0, _LABELS)), _LONGEST_LINE)
            yield Text(f"{'':{_LABELS}}{match[2]}", style="bold", no_wrap=True, overflow="ignore")
