"""Finds what a new definition of the StreamApp takes from users of the old one: fields pruned, values refused.

Called by `python -m release check-definition` and by tests. Pure but for `read_at`, which asks git. What it does not
know counts as a change that takes something.
"""

import re
import subprocess
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.errors import LabError

DEFINITION = Path("crds") / "streamapps.streamapp.dev.yaml"
BASELINE = Path("release") / "baseline" / "streamapps.streamapp.dev.yaml"
"""The definition of the last release; before the first, the one with which this check began."""

Schema = dict[str, Any]

_LOWER = ("minimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
_HARMLESS = frozenset({"description", "default", "example", "title", "externalDocs"})
"""They refuse nothing. A default also adds what was absent."""
_FLAGS_THAT_ALLOW = frozenset({"nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"})
_REFUSE_IF_THERE = frozenset({"pattern", "format", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "uniqueItems"})
_LOOKED_INTO = frozenset(
    {"properties", "items", "additionalProperties", "required", "enum", "x-kubernetes-validations"}
)
_ONLY_WITH = re.compile(r"!has\(self\.([A-Za-z.]+)\) \|\| [^|]+\Z")
"""A rule of two parts, of which the first holds without the field."""


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """One thing that an object which was valid before can lose, or be refused for."""

    path: str
    """As the changelog must name it: `spec.scaleDown.timeout`; items of a list are `[]`."""
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def changes(old: Schema, new: Schema) -> tuple[Change, ...]:
    """Everything that the new definition takes away, in order."""
    return tuple(sorted({*_outside(old["spec"], new["spec"]), *_in_versions(old["spec"], new["spec"])}))


def unnamed(found: Iterable[Change], named: Container[str]) -> tuple[Change, ...]:
    """The changes whose path is not among the names that the changelog has as breaking."""
    return tuple(change for change in found if change.path not in named)


def read(path: Path) -> Schema:
    """Read a definition."""
    found: Schema = yaml.safe_load(path.read_text())
    return found


def read_at(repository: Path, revision: str) -> Schema:
    """Read the definition of a revision; LabError if git has none."""
    place = f"{revision}:{DEFINITION}"
    ran = subprocess.run(["git", "-C", repository, "show", place], capture_output=True, check=False)
    if ran.returncode != 0:
        why = ran.stderr.decode(errors="replace").strip()
        raise LabError(f"definition {place}: not found", why, "name a commit or a tag that has the file")
    found: Schema = yaml.safe_load(ran.stdout)
    return found


def _outside(old: Schema, new: Schema) -> Iterator[Change]:
    for field in ("group", "scope"):
        if old[field] != new[field]:
            yield Change(field, f"was {old[field]}, is {new[field]}")
    for field in ("kind", "plural", "singular", "listKind"):
        if old["names"].get(field) != new["names"].get(field):
            yield Change(f"names.{field}", f"was {old['names'].get(field)}, is {new['names'].get(field)}")
    for field in ("shortNames", "categories"):
        for name in sorted(set(old["names"].get(field, ())) - set(new["names"].get(field, ()))):
            yield Change(f"names.{field}", f"{name} removed")


def _in_versions(old: Schema, new: Schema) -> Iterator[Change]:
    now = {version["name"]: version for version in new["versions"]}
    for before in old["versions"]:
        name = before["name"]
        after = now.get(name)
        if after is None or (before["served"] and not after["served"]):
            yield Change(f"versions.{name}", "not served any more")
            continue
        for subresource, value in before.get("subresources", {}).items():
            if after.get("subresources", {}).get(subresource) != value:
                yield Change(f"subresources.{subresource}", "removed or changed")
        yield from _in_schema(before["schema"]["openAPIV3Schema"], after["schema"]["openAPIV3Schema"], "")


def _in_schema(old: Schema, new: Schema, path: str) -> Iterator[Change]:
    place = path or "(root)"
    yield from _in_values(old, new, place)
    for name in sorted(set(new.get("required", ())) - set(old.get("required", ()))):
        yield Change(_below(path, name), "required now")
    yield from _in_rules(old, new, place)
    yield from _in_properties(old, new, path)
    for keyword, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        yield from _in_children(old.get(keyword), new.get(keyword), f"{path}{suffix}")


def _in_properties(old: Schema, new: Schema, path: str) -> Iterator[Change]:
    after = new.get("properties", {})
    for name, before in old.get("properties", {}).items():
        if name in after:
            yield from _in_schema(before, after[name], _below(path, name))
        elif not new.get("x-kubernetes-preserve-unknown-fields"):
            yield Change(_below(path, name), "removed: stored values are pruned")
    if old.get("x-kubernetes-preserve-unknown-fields"):
        for name in sorted(set(after) - set(old.get("properties", {}))):
            yield Change(_below(path, name), "has a schema now, any value was allowed before")


def _in_children(old: Any, new: Any, path: str) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _in_schema(old, new, path)
    elif old != new and new is not True:
        yield Change(path, "the schema of its values was removed" if new is None else "its values have a schema now")


def _in_rules(old: Schema, new: Schema, place: str) -> Iterator[Change]:
    before = {rule["rule"] for rule in old.get("x-kubernetes-validations", ())}
    for rule in new.get("x-kubernetes-validations", ()):
        if rule["rule"] not in before and not _is_about_a_new_field(rule["rule"], old):
            yield Change(place, f"new rule {rule['rule']}")


def _is_about_a_new_field(rule: str, old: Schema) -> bool:
    """Whether a rule refuses only objects with a field that there was not: none has it that was valid before."""
    found = _ONLY_WITH.match(rule)
    node: Any = old
    for name in found[1].split(".") if found else ():
        if not isinstance(node, dict) or node.get("x-kubernetes-preserve-unknown-fields"):
            return False
        node = node.get("properties", {}).get(name)
        if node is None:
            return True
    return False


def _in_values(old: Schema, new: Schema, place: str) -> Iterator[Change]:
    if "enum" in new:
        lost = [value for value in old.get("enum", ()) if value not in new["enum"]]
        if "enum" not in old:
            yield Change(place, "only some values are allowed now")
        elif lost:
            yield Change(place, f"values removed: {', '.join(map(str, lost))}")
    for keyword in sorted((set(old) | set(new)) - _HARMLESS - _LOOKED_INTO):
        if _is_tighter(keyword, old.get(keyword), new.get(keyword)):
            yield Change(place, f"{keyword} was {_shown(old.get(keyword))}, is {_shown(new.get(keyword))}")


def _is_tighter(keyword: str, before: Any, after: Any) -> bool:
    """Whether fewer values are allowed; of a keyword that this check does not know, whether it changed."""
    if before == after:
        return False
    if keyword in _LOWER or keyword in _UPPER:
        sign = 1 if keyword in _LOWER else -1
        return after is not None and (before is None or sign * (after - before) > 0)
    if keyword in _FLAGS_THAT_ALLOW:
        return bool(before)
    if keyword in _REFUSE_IF_THERE:
        return bool(after)
    return (keyword, before, after) != ("type", "integer", "number")


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: Any) -> str:
    return "absent" if value is None else str(value)
