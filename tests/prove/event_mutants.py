"""Deliberate faults in what keeps a pod where a silent or a rare event has befallen; each fails in its own scene.

Without `taken_back` in the views of the agents alone nothing breaks: what the judgement made use of is compared with
what they say right before the write. So one mutant takes both away.
"""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from streamapp.controller.agents import access
from streamapp.controller.reconcile import apply
from streamapp.core.evidence import agent_views
from tests.prove.mutants import Mutant


def _group_not_compared() -> Iterator[Any]:
    yield patch.object(apply, "changed_since", lambda *_: "")


def _agents_not_compared() -> Iterator[Any]:
    yield patch.object(apply, "moved_since", lambda *_: "")


def _no_word_is_taken_back() -> Iterator[Any]:
    for module in (access, agent_views):
        yield patch.object(module, "taken_back", lambda *_: "")


MEMORY_MUTANTS = (
    Mutant("the newest look at the group is not compared", _group_not_compared, "thread-replaced-as-it-goes"),
    Mutant("the newest words of agents are not compared", _agents_not_compared, "streams-demand-copy-lost-as-it-goes"),
    Mutant("no word of an agent is taken back", _no_word_is_taken_back, "streams-demand-copy-lost-as-it-goes"),
)
