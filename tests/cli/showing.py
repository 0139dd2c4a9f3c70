"""StreamApps as the API server gives them, and what a person sees of them."""

import io
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console, RenderableType

from streamapp.api.v1alpha1.durations import format_duration
from streamapp.cli.screens.status import status_screen
from tests.builders import NOW
from tests.streamapps import stored

Json = dict[str, Any]


def a_resource(
    status: Json | None,
    changes: Mapping[str, Any] | None = None,
    *,
    generation: int = 1,
    told_ago: float = 0,
    asked_ago: float = 3600,
    name: str = "wordcount",
) -> Json:
    """A StreamApp with this status.

    Args:
        status: None: the operator has never answered.
        changes: To the rest of it, by path.
        generation: Of its spec; the statuses of tests answer the first.
        told_ago: Seconds since the operator wrote the status.
        asked_ago: Seconds since somebody wrote the spec.
        name: Its name.
    """
    resource = stored({"metadata.generation": generation, **(changes or {})}, name=name)
    fields = [{"manager": "kubectl", "operation": "Update", "time": zulu(asked_ago)}]
    if status is not None:
        resource["status"] = status
        fields.append({"manager": "streamapp-operator", "subresource": "status", "time": zulu(told_ago)})
    resource["metadata"]["managedFields"] = fields
    return resource


def zulu(seconds_ago: float) -> str:
    return (NOW - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def shown(renderable: RenderableType, width: int = 80, **console: Any) -> list[str]:
    """The lines of it, without what stands at their ends."""
    file = io.StringIO()
    Console(file=file, width=width, **console).print(renderable)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def screen(resource: Json, width: int = 80, *, later: float = 0, most_pods: int | None = None) -> str:
    """The status of one StreamApp, so many seconds later."""
    now: datetime = NOW + timedelta(seconds=later)
    return "\n".join(shown(status_screen(resource, now, most_pods=most_pods), width))


def one_line(text: str) -> str:
    """Without the breaks that a width made."""
    return " ".join(text.split())


def a_step(**fields: Any) -> Json:
    """A finished step, as the status tells it."""
    return {"from": 4, "to": 3, "at": zulu(600), "duration": format_duration(timedelta(seconds=12)), **fields}
