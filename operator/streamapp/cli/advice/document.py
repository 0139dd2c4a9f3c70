"""What was learned, as plain values for JSON and YAML. The keys are API."""

from collections.abc import Sequence
from typing import Any

from streamapp.api.insight import Advice, EtaScore, Insight
from streamapp.cli.advice.learned import Learned, Source, patch_command, share_used

Json = dict[str, Any]


def of_advice(insight: Insight, apps: Sequence[Learned], source: Source) -> Json:
    """The insight about these StreamApps; one that is unknown to it has `known: false` and nothing else."""
    return {
        "configMap": f"{source.namespace}/{source.name}",
        "cluster": insight.cluster,
        "madeAt": insight.made_at.isoformat(),
        "validUntil": insight.valid_until.isoformat(),
        "items": [_app(one) for one in apps],
    }


def _app(learned: Learned) -> Json:
    document: Json = {"namespace": learned.namespace, "name": learned.name, "known": learned.insight is not None}
    found = learned.insight
    if found is None:
        return document
    document |= {"days": found.days, "advice": [_piece(one, learned.namespace) for one in found.advice]}
    if found.budget is not None:
        used = share_used(found.budget)
        budget = found.budget.model_dump(mode="json", by_alias=True, exclude_none=True)
        document["budget"] = budget | ({} if used is None else {"used": used})
    if found.eta is not None:
        document["eta"] = _score(found.eta)
    if found.learned_eta is not None:
        document["learnedEta"] = {"rates": found.learned_eta.rates, "score": _score(found.learned_eta.score)}
    return document


def _score(score: EtaScore) -> Json:
    return {**score.model_dump(mode="json", by_alias=True), "shown": score.is_good}


def _piece(advice: Advice, namespace: str) -> Json:
    piece: Json = advice.model_dump(mode="json", by_alias=True, exclude_none=True)
    return piece if advice.patch is None else piece | {"command": patch_command(advice.patch, namespace)}
