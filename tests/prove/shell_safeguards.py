"""Every safeguard of the operator's shell, found in its source, and the product without any one of them.

The shell is what reads and writes: `controller/reconcile`, `controller/leader`, and the client and the objects of
`kube`. There a safeguard has one of five forms, and whoever writes one in another form has to teach this module:

- a `raise` of one of `REFUSALS`: what was read is not what was judged, or this process does not lead;
- a call of one of `GUARDS` as a statement: it returns or raises;
- a question of `ANSWERS`: its answer decides whether there is a second judgement, or a check right before sending;
- `may_write`, which every write asks;
- the fence of a write: `uid` and `resourceVersion` in what is sent.

A mutant is the function compiled anew without that one place. So a new safeguard is found without being written down,
and `test_shell_mutants.py` fails until it is known what the sweep makes of the product without it.
"""

import ast
import importlib
import inspect
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import streamapp

ROOMS = ("controller/reconcile", "controller/leader", "kube/client", "kube/objects")
"""Folders of the product whose safeguards are found."""
REFUSALS = frozenset({"ConflictError", "NotLeadingError", "RaisePendingError", "InvalidError"})
GUARDS = frozenset(
    {"check", "confirm", "give_way", "_check_again", "_check_agents", "_lose", "_verify_own", "_refuse_foreign"}
)
ANSWERS = {
    "_freshness": "lambda: None",
    "_still_desired": "lambda *_: None",
    "_must_be_live": "False",
    "_is_all_done": "True",
    "is_received": "False",
    "leads": "True",
    "fence_hold_record": "False",
}
"""Each with the expression that lets everything pass."""
VERSION = "resourceVersion"


@dataclass(frozen=True, slots=True, order=True)
class Safeguard:
    """One place in the source."""

    module: str
    """Without the name of the product, as `controller.reconcile.apply`."""
    function: str
    """With its class, as `Applier._check_again`."""
    form: str
    """What stands there, as `raise ConflictError`."""
    number: int
    """Of this form in this function, from 1."""

    def __str__(self) -> str:
        return f"{self.module.rpartition('.')[2]}.{self.function}: {self.form} {self.number}"


def every_safeguard() -> tuple[Safeguard, ...]:
    """All of them, in the order of the source."""
    return tuple(one for module in _modules() for one in _of_module(module))


@contextmanager
def without(*dropped: Safeguard) -> Iterator[None]:
    """Have the product do without these safeguards."""
    sound: list[tuple[FunctionType, CodeType]] = []
    try:
        for (module, name), places in _by_function(dropped).items():
            function = _function(module, name)
            sound.append((function, function.__code__))
            function.__code__ = _mutated(module, name, places)
        yield
    finally:
        for function, code in sound:
            function.__code__ = code


def _by_function(dropped: Sequence[Safeguard]) -> Mapping[tuple[str, str], list[Safeguard]]:
    found: dict[tuple[str, str], list[Safeguard]] = {}
    for one in dropped:
        found.setdefault((one.module, one.function), []).append(one)
    return found


def _modules() -> Iterator[str]:
    root = Path(str(streamapp.__path__[0]))
    for room in ROOMS:
        for path in sorted((root / room).glob("*.py")):
            if path.stem != "__init__":
                yield ".".join(path.relative_to(root).with_suffix("").parts)


@cache
def _functions(module: str) -> Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods of a module; those within a function belong to it."""
    tree = ast.parse(inspect.getsource(importlib.import_module(f"streamapp.{module}")))
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for each in inside:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                found[f"{prefix}{each.name}"] = each
    return found


def _of_module(module: str) -> Iterator[Safeguard]:
    for name, node in _functions(module).items():
        search = _Without(module, name, ())
        search.visit(_copy(node))
        yield from search.found


def _mutated(module: str, name: str, dropped: Sequence[Safeguard]) -> CodeType:
    tree = _Without(module, name, dropped).visit(_copy(_functions(module)[name]))
    tree.decorator_list = []
    whole = ast.fix_missing_locations(ast.Module(body=[tree], type_ignores=[]))
    code = compile(whole, f"<{module} without a safeguard>", "exec")
    return next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == tree.name)


def _function(module: str, name: str) -> FunctionType:
    found: Any = reduce(
        inspect.getattr_static,
        name.split("."),
        importlib.import_module(f"streamapp.{module}"),
    )
    unwrapped: Any = inspect.unwrap(getattr(found, "fget", None) or getattr(found, "__func__", None) or found)
    if not isinstance(unwrapped, FunctionType):
        raise TypeError(f"{module}.{name} is no function")
    return unwrapped


def _copy(node: ast.AST) -> Any:
    return ast.parse(textwrap.dedent(ast.unparse(node))).body[0]


class _Without(ast.NodeTransformer):
    """Finds safeguards, and leaves some out."""

    def __init__(self, module: str, function: str, dropped: Sequence[Safeguard]) -> None:
        self._module, self._name, self._dropped = module, function, dropped
        self._counts: Counter[str] = Counter()
        self.found: list[Safeguard] = []

    def _is_dropped(self, form: str) -> bool:
        self._counts[form] += 1
        one = Safeguard(self._module, self._name, form, self._counts[form])
        self.found.append(one)
        return one in self._dropped

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = raised.id if isinstance(raised, ast.Name) else ""
        self.generic_visit(node)
        return ast.Pass() if name in REFUSALS and self._is_dropped(f"raise {name}") else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        name = _called(call)
        self.generic_visit(node)
        return ast.Pass() if name in GUARDS and self._is_dropped(f"call {name}") else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = _called(node)
        self.generic_visit(node)
        if name in ANSWERS and self._is_dropped(f"ask {name}"):
            return ast.parse(ANSWERS[name], mode="eval").body
        return node

    def visit_Await(self, node: ast.Await) -> ast.AST:
        self.generic_visit(node)
        return node if isinstance(node.value, ast.Call) else node.value  # an answer that nothing is awaited for

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        is_asked = node.attr == "_may_write" and isinstance(node.ctx, ast.Load)
        return ast.parse("lambda: None", mode="eval").body if is_asked and self._is_dropped("may_write") else node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        fences = [key for key in node.keys if isinstance(key, ast.Constant) and key.value == VERSION]
        if not fences or not self._is_dropped("fence"):
            return node
        kept = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if not _is_fence(key)]
        return ast.Dict(keys=[key for key, _ in kept], values=[value for _, value in kept])

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        self.generic_visit(node)
        names = node.generators[0].iter
        if isinstance(names, ast.Tuple) and any(_is_fence(each) for each in names.elts) and self._is_dropped("fence"):
            names.elts = [each for each in names.elts if not _is_fence(each)]
        return node


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_fence(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in {"uid", VERSION}
