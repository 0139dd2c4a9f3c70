"""What a new definition takes from users: each kind of change alone, and the real definition against its baseline."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from lab.errors import LabError
from lab.settings import REPOSITORY
from release.changelog import breaking
from release.definition import BASELINE, DEFINITION, Change, changes, read, read_at, unnamed
from release.numbering import version_of

Schema = dict[str, Any]

APP: Schema = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string", "maxLength": 10, "pattern": "^a"},
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "mode": {"type": "string", "enum": ["Hold", "Go"]},
        "tags": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 3}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
    "x-kubernetes-validations": [{"rule": "self.size > 0", "message": "m"}],
}


def definition(spec: Schema) -> Schema:
    root = {"type": "object", "properties": {"spec": spec}}
    version = {
        "name": "v1alpha1",
        "served": True,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size"}},
        "schema": {"openAPIV3Schema": root},
    }
    names = {"kind": "App", "plural": "apps", "singular": "app", "listKind": "AppList", "shortNames": ["a"]}
    return {"spec": {"group": "g", "scope": "Namespaced", "names": names, "versions": [version]}}


def spec_after(act: Callable[[Schema], object]) -> Schema:
    spec = deepcopy(APP)
    act(spec)
    return definition(spec)


def put(path: str, value: Any) -> Callable[[Schema], object]:
    """Set a keyword: `size/minimum`; None takes it away."""
    *parents, last = path.split("/")

    def act(spec: Schema) -> None:
        node = spec
        for parent in parents:
            node = node[parent] if parent in {"items", "additionalProperties"} else node["properties"][parent]
        if value is None:
            del node[last]
        else:
            node[last] = value

    return act


def without(name: str) -> Callable[[Schema], object]:
    return lambda spec: spec["properties"].pop(name)


def added(name: str, schema: Schema) -> Callable[[Schema], object]:
    return lambda spec: spec["properties"].update({name: schema})


RULE = {"rule": "self.size < 5", "message": "m"}


@pytest.mark.parametrize(
    ("act", "path", "what"),
    [
        (without("size"), "spec.size", "removed: stored values are pruned"),
        (put("size/type", "string"), "spec.size", "type was integer, is string"),
        (put("mode/enum", ["Hold"]), "spec.mode", "values removed: Go"),
        (put("id/enum", ["a"]), "spec.id", "only some values are allowed now"),
        (put("size/minimum", 2), "spec.size", "minimum was 1, is 2"),
        (put("size/maximum", 8), "spec.size", "maximum was 9, is 8"),
        (put("id/minLength", 1), "spec.id", "minLength was absent, is 1"),
        (put("id/pattern", "^b"), "spec.id", "pattern was ^a, is ^b"),
        (put("mode/format", "date"), "spec.mode", "format was absent, is date"),
        (put("tags/maxItems", 4), "spec.tags", "maxItems was 5, is 4"),
        (put("tags/items/maxLength", 2), "spec.tags[]", "maxLength was 3, is 2"),
        (put("tags/x-kubernetes-list-type", "set"), "spec.tags", "x-kubernetes-list-type was absent, is set"),
        (put("labels/additionalProperties/maxLength", 2), "spec.labels{}", "maxLength was absent, is 2"),
        (put("labels/additionalProperties", None), "spec.labels{}", "the schema of its values was removed"),
        (
            put("free/x-kubernetes-preserve-unknown-fields", None),
            "spec.free",
            "x-kubernetes-preserve-unknown-fields was True, is absent",
        ),
        (
            put("free/properties", {"x": {"type": "string"}}),
            "spec.free.x",
            "has a schema now, any value was allowed before",
        ),
        (put("required", ["id", "size"]), "spec.size", "required now"),
        (put("x-kubernetes-validations", [RULE]), "spec", "new rule self.size < 5"),
        *(
            (put("x-kubernetes-validations", [{"rule": rule, "message": "no"}]), "spec", f"new rule {rule}")
            for rule in (
                "!has(self.size) || self.size < 5",
                "!has(self.more) || self.more || has(self.size)",
                "!has(self.free.more) || self.size < 5",
            )
        ),
        (put("size/x-kubernetes-of-tomorrow", True), "spec.size", "x-kubernetes-of-tomorrow was absent, is True"),
    ],
)
def test_what_prunes_or_tightens_is_found_alone(act: Callable[[Schema], object], path: str, what: str) -> None:
    assert changes(definition(APP), spec_after(act)) == (Change(path, what),)


@pytest.mark.parametrize(
    "act",
    [
        added("more", {"type": "string", "maxLength": 1, "x-kubernetes-validations": [RULE]}),
        put("size/minimum", 0),
        put("size/maximum", None),
        put("size/type", "number"),
        put("id/pattern", None),
        put("id/nullable", True),
        put("mode/enum", ["Hold", "Go", "Wait"]),
        put("mode/enum", None),
        put("id/description", "other"),
        put("size/default", 3),
        put("required", []),
        put("x-kubernetes-validations", []),
        put("x-kubernetes-validations", [{"rule": "!has(self.more) || self.size < 5", "message": "too large"}]),
        put("tags/items/maxLength", 30),
    ],
)
def test_what_only_allows_more_is_fine(act: Callable[[Schema], object]) -> None:
    assert changes(definition(APP), spec_after(act)) == ()


@pytest.mark.parametrize(
    ("act", "path"),
    [
        (lambda one: one["versions"][0].update(served=False), "versions.v1alpha1"),
        (lambda one: one["versions"][0].update(name="v1"), "versions.v1alpha1"),
        (lambda one: one["versions"][0]["subresources"].pop("scale"), "subresources.scale"),
        (lambda one: one.update(scope="Cluster"), "scope"),
        (lambda one: one["names"].update(plural="others"), "names.plural"),
        (lambda one: one["names"].update(shortNames=[]), "names.shortNames"),
    ],
)
def test_what_lies_outside_the_schema_is_found_too(act: Callable[[Schema], object], path: str) -> None:
    new = definition(deepcopy(APP))
    act(new["spec"])
    assert [change.path for change in changes(definition(APP), new)] == [path]


def test_only_a_path_that_the_changelog_names_is_allowed_to_change() -> None:
    found = [Change(path, "removed") for path in ("spec.size", "spec.mode", "spec.id")]
    assert unnamed(found, {"spec.size", "spec.other"}) == tuple(found[1:])


def named() -> frozenset[str]:
    return breaking((REPOSITORY / "CHANGELOG.md").read_text(), version_of(REPOSITORY))


def test_the_definition_takes_nothing_from_users_of_the_last_release_that_the_changelog_does_not_name() -> None:
    assert unnamed(changes(read(REPOSITORY / BASELINE), read(REPOSITORY / DEFINITION)), named()) == ()


def test_a_revision_without_the_file_is_named() -> None:
    with pytest.raises(LabError, match="no-such-revision"):
        read_at(REPOSITORY, "no-such-revision")
