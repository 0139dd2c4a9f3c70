"""Changes to a pod template: what the user gives, and the merge patches there and back. Pure.

A merge patch replaces a list as a whole. So the user's change is laid over the template by the names of containers,
variables and volumes, and the patch that is sent is the difference between the two templates.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import yaml

from streamapp.api.v1alpha1.pod_template import mapping, mappings

Json = dict[str, Any]
_BY_NAME = {"containers", "initContainers", "env", "volumes"}
"""Lists whose entries have names that are unique there."""


class UnusablePatchError(Exception):
    """What is wrong with the user's change."""


def read_patch(text: str) -> Json:
    """Read the change of the pod template from YAML or JSON: an object with `spec.template` and nothing else.

    Raises:
        UnusablePatchError: It is none.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UnusablePatchError(f"it is neither YAML nor JSON: {' '.join(str(error).split())}") from error
    spec = document.get("spec") if isinstance(document, dict) else None
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(document, dict) or not isinstance(spec, dict) or not isinstance(template, dict):
        raise UnusablePatchError("it must have spec.template, as the StreamApp has")
    others = sorted({f"spec.{field}" for field in spec if field != "template"})
    if others:
        raise UnusablePatchError(f"it must change spec.template alone, and it has {', '.join(others)}")
    return dict(template)


def variables_patch(container: str, words: Sequence[str]) -> Json:
    """The change that sets (`NAME=VALUE`) or removes (`NAME-`) variables of a container.

    Raises:
        UnusablePatchError: One of the words is of neither form.
    """
    changes: list[Json] = []
    for word in words:
        name, equals, value = word.partition("=")
        is_removed = not equals and word.endswith("-")
        name = word.removesuffix("-") if is_removed else name
        if not name or not (equals or is_removed):
            raise UnusablePatchError(f"{word!r} is neither NAME=VALUE nor NAME-")
        changes.append({"name": name, "$patch": "delete"} if is_removed else {"name": name, "value": value})
    return {"spec": {"containers": [{"name": container, "env": changes}]}}


def laid_over(template: Mapping[str, Any], change: Mapping[str, Any]) -> Json:
    """The template with a change laid over it: None removes a field, and entries with names meet by name."""
    made = deepcopy(dict(template))
    for field, value in change.items():
        if value is None:
            made.pop(field, None)
        elif isinstance(value, Mapping):
            made[field] = laid_over(mapping(made.get(field)), value)
        elif field in _BY_NAME and isinstance(value, list):
            made[field] = _by_name(mappings(made.get(field)), mappings(value), is_env=field == "env")
        else:
            made[field] = deepcopy(value)
    return made


def _by_name(before: list[Mapping[str, Any]], changes: list[Mapping[str, Any]], *, is_env: bool) -> list[Json]:
    entries = {str(entry.get("name")): dict(entry) for entry in before}
    for change in changes:
        name = str(change.get("name"))
        if change.get("$patch") == "delete":
            entries.pop(name, None)
        else:
            # A variable has a value or a source: never what is left of the other.
            entries[name] = dict(change) if is_env else laid_over(entries.get(name, {}), change)
    return list(entries.values())


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """The merge patch that makes `after` of `before`; empty if they are equal."""
    patch: Json = {field: None for field in before if field not in after}
    for field, value in after.items():
        old = before.get(field)
        if value == old:
            continue
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        patch[field] = difference(mapping(old), mapping(value)) if both else value
    return patch


def has(template: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
    """Whether a template already says what a merge patch would write."""
    return all(
        (field not in template if value is None else has(mapping(template.get(field)), value))
        if value is None or isinstance(value, Mapping)
        else template.get(field) == value
        for field, value in patch.items()
    )


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A template without a change that was written before."""

    template: Json
    conflicts: tuple[str, ...]
    """Paths at which neither the written nor the former value stands: they are left as they are."""


def taken_back(present: Mapping[str, Any], *, written: Mapping[str, Any], former: Mapping[str, Any]) -> TakenBack:
    """Take a change back out of a template that others may have changed since.

    Entries with names meet by name here too: a merge patch has the whole list of containers, and a new image that
    another writer set meanwhile must stay.

    Args:
        present: The template as it stands.
        written: The merge patch of the change.
        former: The merge patch that takes `written` back; both have the same fields.
    """
    conflicts: list[str] = []
    made = _restored(present, written, former, "", conflicts)
    return TakenBack(made, tuple(conflicts))


def _restored(
    present: Mapping[str, Any], written: Mapping[str, Any], former: Mapping[str, Any], path: str, conflicts: list[str]
) -> Json:
    """The object with the former value wherever the written one stands; None is a field that is absent."""
    made = deepcopy(dict(present))
    for field in dict.fromkeys((*written, *former)):
        value = _former(present.get(field), written.get(field), former.get(field), f"{path}{field}", conflicts)
        if value is None:
            made.pop(field, None)
        else:
            made[field] = value
    return made


def _former(present: Any, written: Any, former: Any, path: str, conflicts: list[str]) -> Any:
    field = path.rpartition(".")[2]
    if written == former:
        return deepcopy(present)
    if present in (written, former):
        return deepcopy(former)
    if all(isinstance(one, Mapping) for one in (present, written, former)) and not _is_variable(path):
        return _restored(present, written, former, f"{path}.", conflicts)
    if field in _BY_NAME and all(one is None or isinstance(one, list) for one in (present, written, former)):
        entries = mappings(present), mappings(written), mappings(former)
        return _restored_entries(entries, path, conflicts) or None
    conflicts.append(path)
    return deepcopy(present)


def _is_variable(path: str) -> bool:
    """A variable has a value or a source: it is taken back as a whole, never in parts."""
    return path.endswith("]") and path.rpartition("[")[0].endswith(".env")


def _restored_entries(
    present_written_former: tuple[list[Mapping[str, Any]], ...], path: str, conflicts: list[str]
) -> list[Json]:
    is_, was_written, was = ({str(one.get("name")): one for one in entries} for entries in present_written_former)
    made: dict[str, Json] = {}
    for name in _names(list(is_), list(was)):
        if name not in was_written and name not in was:
            made[name] = dict(is_[name])
            continue
        entry = _former(is_.get(name), was_written.get(name), was.get(name), f"{path}[{name}]", conflicts)
        if entry is not None:
            made[name] = entry
    return list(made.values())


def _names(present: list[str], former: list[str]) -> list[str]:
    """Present names in their order, a missing one behind its former predecessor: variables refer to those before."""
    names = list(present)
    for place, name in enumerate(former):
        if name not in names:
            names.insert(names.index(former[place - 1]) + 1 if place else 0, name)
    return names
