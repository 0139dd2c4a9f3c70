"""Why a pod does not run its application, from its status as the kubelet and the scheduler write it.

Pure functions over the API server's JSON, called by `from_json`. For messages alone: nothing is decided by a fault.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from streamapp.core.facts.workload import PodFault
from streamapp.kube.client.client import Json

_HARMLESS = {"", "ContainerCreating", "PodInitializing"}
"""Why a container waits that will start."""
_MOST_WORDS = 200
_THROWN = re.compile(
    r"^(?:Caused by: |Exception in thread \".*\" |(?:Terminating|Aborting) due to )?"
    r"(?P<thrown>[\w.$]+(?:Exception|Error)\b.*)$"
)
"""A line of a stack trace that names what was thrown, or the JVM's own one, where it ends itself of it."""


def pod_fault(pod: Json, application_container: str | None) -> PodFault | None:
    """Give what keeps the application from running, or what ended its last run; None if nothing does.

    Init containers come before the application; the containers that others inject count only while they wait or have
    ended, since a pod with one of them down is not ready.
    """
    status = pod.get("status", {})
    for init in status.get("initContainerStatuses") or ():
        fault = _of_container(init, is_application=False)
        if fault is not None:
            return fault
    others = []
    for one in status.get("containerStatuses") or ():
        is_application = one["name"] == application_container
        fault = _of_container(one, is_application=is_application)
        if fault is not None and is_application:
            return fault
        others.append(fault)
    return next((fault for fault in others if fault is not None), None) or _unscheduled(status)


def _of_container(status: Mapping[str, Any], *, is_application: bool) -> PodFault | None:
    state, last = status.get("state", {}), status.get("lastState", {}).get("terminated", {})
    ended = state.get("terminated", {})
    waiting = state.get("waiting", {})
    if "waiting" in state and waiting.get("reason", "") not in _HARMLESS:
        return _fault(status, waiting["reason"], last, waiting.get("message", ""))
    if ended and ended.get("exitCode") != 0:
        return _fault(status, ended.get("reason", ""), ended)
    if is_application and last and last.get("exitCode") != 0:
        return _fault(status, last.get("reason", ""), last)
    return None


def _fault(status: Mapping[str, Any], reason: str, ended: Mapping[str, Any], instead: str = "") -> PodFault:
    """The fault of a container, with the cause of its last end if that tells more than an error."""
    cause = ended.get("reason", "")
    return PodFault(
        reason=cause if cause not in {"", "Error", "Completed"} else reason,
        container=status["name"],
        exit_code=ended.get("exitCode"),
        restarts=status.get("restartCount", 0),
        ran_for=_length(ended),
        last_words=_cause_or_end(ended.get("message", "")) if ended else _end_of(instead),
    )


def _length(ended: Mapping[str, Any]) -> timedelta | None:
    """The length of a run; None where the kubelet lost sight of it: it gives no times then."""
    started, finished = ended.get("startedAt"), ended.get("finishedAt")
    return datetime.fromisoformat(finished) - datetime.fromisoformat(started) if started and finished else None


def _unscheduled(status: Mapping[str, Any]) -> PodFault | None:
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return PodFault(reason=condition.get("reason", ""), last_words=_end_of(condition.get("message", "")))
    return None


def _cause_or_end(message: str) -> str:
    """What a container ended of, as one line: the innermost cause of its last stack trace, or else the end of its log.

    Behind its stack trace a Kafka Streams application logs how it closes, which would be all that the end shows.
    """
    end, thrown = _end_of(message), [found["thrown"] for line in message.splitlines() if (found := _THROWN.match(line))]
    if not end.startswith("…") or not thrown:
        return end
    cause = _line(thrown[-1])
    return cause if len(cause) <= _MOST_WORDS else f"{cause[: _MOST_WORDS - 1]}…"


def _end_of(message: str) -> str:
    """The end of a text as one line."""
    line = _line(message)
    return line if len(line) <= _MOST_WORDS else f"…{line[1 - _MOST_WORDS :]}"


def _line(text: str) -> str:
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
