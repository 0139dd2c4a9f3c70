"""What is to be said of the agents in the pods: sentences for `explain`, words for the screen."""

from collections.abc import Iterator

from streamapp.api.v1alpha1.status import AgentState
from streamapp.cli.model.app_view import View
from streamapp.core.facts.policy import LearnerSource

STYLES = {AgentState.ACTIVE: "", AgentState.INACTIVE: "yellow", AgentState.UNREACHABLE: "red"}
_MOST_NAMED = 5


def word_for(source: LearnerSource) -> str:
    """How a person calls where copies come from."""
    return "on demand" if source is LearnerSource.ON_DEMAND else source.value.lower()


def agents(view: View) -> Iterator[str]:
    """Say what agents do, where there are any; why one of them does not, a condition says."""
    if view.status.learner_source is LearnerSource.ON_DEMAND:
        yield "Copies are made on demand: the tasks of a pod that is to leave move before it goes."
    silent, aside = _pods(view, AgentState.UNREACHABLE), _pods(view, AgentState.INACTIVE)
    if silent:
        yield f"{silent} not heard."
    if aside:
        yield f"{aside} heard, and the assignor that learns on demand is not at work there."


def _pods(view: View, state: AgentState) -> str:
    ordinals = [str(member.ordinal) for member in view.status.members if member.agent is state]
    if not ordinals:
        return ""
    if len(ordinals) == 1:
        return f"The agent in pod {ordinals[0]} is"
    if len(ordinals) > _MOST_NAMED:
        return f"The agents in {len(ordinals)} pods are"
    return f"The agents in pods {', '.join(ordinals[:-1])} and {ordinals[-1]} are"
