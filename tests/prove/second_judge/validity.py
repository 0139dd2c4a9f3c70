"""Whether the operator can act on a StreamApp, by what its user wrote: README's list of exceptions to guarantee 3."""

from typing import Any

Json = dict[str, Any]


def is_valid(app: Json) -> bool:
    """Neither paused, nor a dry run, nor invalid, nor being deleted."""
    spec = app["spec"]
    is_stopped = spec.get("paused") or spec.get("dryRun") or "deletionTimestamp" in app["metadata"]
    return not is_stopped and not is_invalid(spec)


def is_invalid(spec: Json) -> bool:
    """The machine's own mistakes, as the resource's page names them."""
    scale_down, learners = spec.get("scaleDown", {}), spec.get("learners", {})
    needs_reason = scale_down.get("policy") == "Immediate" or scale_down.get("onTimeout") == "Proceed"
    return bool(
        (needs_reason and not scale_down.get("reason"))
        or " " in spec["kafka"]["bootstrapServers"]
        or (learners.get("source") == "OnDemand" and not spec.get("agent", {}).get("enabled"))
        or scale_down.get("stabilizationWindow") == "soon"
        or (spec.get("replicas") == 0 and not scale_down.get("allowZero"))
    )
