"""Makes a case that fails smaller while it still fails."""

import copy
from collections.abc import Callable, Iterator

from tests.model.cases import Case


def minimal(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Return a case that fails and of which no single part can be left out."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(case):
            if fails(candidate):
                case, is_smaller = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for key in ("clients", "members", "subtopologies"):
        for at in range(len(case.get(key, ())) if len(case.get(key, ())) > 1 else 0):
            yield case | {key: case[key][:at] + case[key][at + 1 :]}
    for task in case.get("tasks", {}) if len(case.get("tasks", {})) > 1 else ():
        yield _without_task(case, task)
    for at, one in enumerate(case.get("subtopologies", ())):
        if one["partitions"] > 1:
            yield _with(case, "subtopologies", at, partitions=one["partitions"] - 1)
    for key in ("clients", "members"):
        for at, one in enumerate(case.get(key, ())):
            for simpler in _simpler(one):
                yield _with(case, key, at, **simpler)


def _simpler(one: Case) -> Iterator[Case]:
    if one.get("threads", 1) > 1:
        yield {"threads": 1}
    for kind in ("copies", "standbys"):
        for task in one.get(kind, ()):
            yield {kind: [other for other in one[kind] if other != task]}
    for task in one.get("offsets", ()):
        yield {"offsets": {other: offset for other, offset in one["offsets"].items() if other != task}}


def _with(case: Case, key: str, at: int, **changes: object) -> Case:
    changed = copy.deepcopy(case)
    changed[key][at] |= changes
    return changed


def _without_task(case: Case, task: str) -> Case:
    left = copy.deepcopy(case)
    del left["tasks"][task]
    for client in left["clients"]:
        client["lags"].pop(task, None)
        for kind in ("actives", "copies"):
            client[kind] = [other for other in client[kind] if other != task]
    return left
