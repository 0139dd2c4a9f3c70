"""The core imports nothing but itself and a few modules of the standard library that only compute."""

import ast
from collections.abc import Iterator
from pathlib import Path

import streamapp.core

CORE = Path(streamapp.core.__file__).parent
COMPUTING_ONLY = {
    "collections",
    "dataclasses",
    "datetime",
    "enum",
    "functools",
    "hashlib",
    "itertools",
    "json",
    "operator",
    "re",
    "types",
    "typing",
    "uuid",
}


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def is_allowed(name: str) -> bool:
    return name.startswith("streamapp.core") or name.split(".", maxsplit=1)[0] in COMPUTING_ONLY


def test_nothing_is_imported_that_could_act_or_tell_the_time() -> None:
    refused = {
        (module.name, name) for module in CORE.rglob("*.py") for name in imported(module) if not is_allowed(name)
    }
    assert refused == set()


def called(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Attribute):
            yield node.attr


def test_nobody_asks_for_the_time_or_for_chance() -> None:
    asks = {"now", "utcnow", "today", "uuid1", "uuid4"}
    found = {
        (module.name, name)
        for module in CORE.rglob("*.py")
        for name in called(module)
        if name in asks and not _is_the_snapshots(module, name)
    }
    assert found == set()


def _is_the_snapshots(module: Path, name: str) -> bool:
    """`snapshot.now` is where time enters."""
    owners = {
        ast.unparse(node.value)
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == name
    }
    return all(owner.endswith("snapshot") or owner == "self" for owner in owners)


def test_no_module_is_long_and_no_function_either() -> None:
    # The catalogue of reasons is texts one after the other, nothing that anybody has to hold in mind.
    most = {module: 1000 if module.stem == "reasons" else 500 for module in CORE.rglob("*.py")}
    long = [module.name for module, lines in most.items() if len(module.read_text().splitlines()) > lines]
    functions = [
        (module.name, node.name)
        for module in CORE.rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 40
    ]
    assert (long, functions) == ([], [])


def test_every_room_is_named_in_the_reading_order() -> None:
    order = streamapp.core.__doc__ or ""
    rooms = {path.stem for path in CORE.iterdir() if path.name[0] not in "_."}
    assert {room for room in rooms if f"\n`{room}`" not in order} == set()
