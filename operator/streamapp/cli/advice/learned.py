"""What was learned of one StreamApp, and the figures that people ask for first. Pure."""

import shlex
from dataclasses import dataclass

from streamapp.api.insight import LEAST_COVER, LEAST_HOLDS, MOST_COVER, AppInsight, Budget, EtaScore, Patch


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The ConfigMap of the insight."""

    namespace: str
    name: str

    @property
    def title(self) -> str:
        """How errors name it."""
        return f"ConfigMap {self.namespace}/{self.name}"

    @property
    def next_step(self) -> str:
        """What brings new insight."""
        jobs = f"`kubectl get cronjobs,jobs --namespace {self.namespace}`"
        return f"run the CronJob of the pipeline now, and read the log of its newest job ({jobs})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One StreamApp of the cluster."""

    namespace: str
    name: str
    insight: AppInsight | None
    """None: nothing was learned of it yet, or it has no room in the insight."""


def share_used(budget: Budget) -> float | None:
    """The part of the month's budget that is used, 1.0 for all of it; None if the budget is unknown or zero."""
    return budget.lost_seconds / budget.budget_seconds if budget.budget_seconds else None


def patch_command(patch: Patch, namespace: str) -> str:
    """The command that applies a patch, quoted for a shell: the text of insight is not trusted."""
    kind, name = patch.kind.lower(), patch.name or "NAME"
    words = ["kubectl", "patch", kind, name, "--namespace", namespace, "--type", "merge", "--patch", patch.patch]
    return shlex.join(words)


def verdict_of(score: EtaScore) -> str:
    """Whether ranges of estimates are shown, and if not, why."""
    if score.is_good:
        return "the status shows the range"
    cover = f"{LEAST_COVER * 100:.0f} to {MOST_COVER * 100:.0f} %"
    return f"the status shows no range: it needs {cover} over {LEAST_HOLDS} holds or more"
