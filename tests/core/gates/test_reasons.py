"""The rows of reasons agree with the gates: the code of each gate says which reasons the gate can give.

The reasons are read from the syntax trees of `core/gates` and `core/evidence`. What a function returns is followed
through names, attributes and calls, so a reason that a function only looks at does not count as given.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import streamapp.core
from streamapp.core.facts.agent_reports import AsideKind
from streamapp.core.gates import chains
from streamapp.core.gates.case import Gate
from streamapp.core.reasons import Reason

CORE = Path(streamapp.core.__file__).parent
READ_WITH_THE_GROUP = {
    *(Reason.BrokersUnreachable, Reason.GroupProtocolUnsupported, Reason.GroupUndecodable),
    Reason.GroupOutdated,
}
"""What `GroupUnreadable` carries; the controller fills it in."""
CARRIED = {"group": READ_WITH_THE_GROUP, "_assigned_otherwise": {kind.reason for kind in AsideKind}}
"""Reasons that a function takes from a fact, by the function's name."""

REMOVAL = {
    *(*chains.REMOVAL_GATES, *chains.DRAINED_REMOVAL_GATES),
    *(*chains.NEVER_RAN_GATES, *chains.REPLACEMENT_GATES),
}
COVERAGE = {*chains.COVERAGE_GATES, *chains.TWO_PLACES_GATES, *chains.LEARNER_GATES} - REMOVAL
ALL_GATES = {
    *(*REMOVAL, *COVERAGE, *chains.READINESS_GATES, *chains.CONVERGENCE_GATES),
    *(*chains.CONVERGED_GATES, *chains.STEP_END_GATES, *chains.STEP_END_BY_TASKS_GATES),
}
BY_READINESS = {Reason.GroupProtocolUnsupported}
"""Where nothing of the group is read, a user's word counts on the readiness of pods alone."""
WITHOUT_A_GATE = {Reason.NoProgress, Reason.GaveUp}
"""Reasons of a hold that waited for coverage in vain; a user can override such a hold too."""

Function = ast.FunctionDef


@cache
def functions() -> dict[str, list[Function]]:
    """Every function and method of the two rooms, by name; a method also as `Class.name`, a property after a dot."""
    found: dict[str, list[Function]] = {}
    for room in ("gates", "evidence"):
        for module in sorted((CORE / room).glob("*.py")):
            for node in ast.walk(ast.parse(module.read_text())):
                if isinstance(node, ast.ClassDef):
                    _name_own_methods(node)
                    for method in (one for one in node.body if isinstance(one, ast.FunctionDef)):
                        found.setdefault(_key(f"{node.name}.{method.name}", method), []).append(method)
                if isinstance(node, ast.FunctionDef):
                    found.setdefault(_key(node.name, node), []).append(node)
    return found


def _key(name: str, function: Function) -> str:
    return f".{name}" if any("property" in ast.unparse(one) for one in function.decorator_list) else name


def _name_own_methods(class_: ast.ClassDef) -> None:
    """Write `self.name` as `self.Class.name`: other classes have methods of the name too."""
    own = {node.name for node in class_.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(class_):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=attribute) if attribute in own:
                node.attr = f"{class_.name}.{attribute}"


@cache
def reasons_of(name: str) -> frozenset[Reason]:
    """Every reason that what a function returns can carry."""
    return frozenset(_Search(set()).function(name))


class _Search:
    """Follows what functions return; each function is entered once."""

    def __init__(self, entered: set[str]) -> None:
        self._entered = entered

    def function(self, name: str) -> Iterator[Reason]:
        if name in self._entered:
            return
        self._entered.add(name)
        yield from CARRIED.get(name.rpartition(".")[2], ())
        for function in functions()[name]:
            names = _bindings(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from self._value(node.value, names, set())

    def _value(self, node: ast.AST, names: dict[str, list[ast.AST]], seen: set[str]) -> Iterator[Reason]:
        match node:
            case ast.Attribute(value=ast.Name(id="Reason"), attr=reason):
                yield Reason[reason]
            case ast.Name(id=name):
                if name not in seen:
                    for bound in names.get(name, ()):
                        yield from self._value(bound, names, seen | {name})
                if name not in names and name in functions():
                    yield from self.function(name)  # Handed on, to be called later.
            case ast.Call(func=ast.Name(id="Refusal"), args=[reason, *more]):
                yield from self._values([reason, *more[1:]], names, seen)
            case ast.Call(func=called, args=arguments, keywords=keywords):
                yield from self._called(called, names, seen)
                yield from self._values(arguments, names, seen)
                yield from self._values([one.value for one in keywords if one.arg == "reason"], names, seen)
            case ast.Attribute(value=owner, attr=attribute):
                if f".{attribute}" in functions():
                    yield from self.function(f".{attribute}")
                yield from self._value(owner, names, seen)
            case _:
                yield from self._values(_parts(node), names, seen)

    def _values(self, nodes: Iterable[ast.AST], names: dict[str, list[ast.AST]], seen: set[str]) -> Iterator[Reason]:
        for node in nodes:
            yield from self._value(node, names, seen)

    def _called(self, called: ast.expr, names: dict[str, list[ast.AST]], seen: set[str]) -> Iterator[Reason]:
        match called:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in functions():
                yield from self.function(name)
        if isinstance(called, ast.Attribute):
            yield from self._value(called.value, names, seen)


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of an expression that can be its value."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.Compare() | ast.JoinedStr() | ast.Lambda():
            return []
    return ast.iter_child_nodes(node)


def _bindings(function: Function) -> dict[str, list[ast.AST]]:
    """The expressions that each local name is bound to."""
    names: dict[str, list[ast.AST]] = {one.arg: [] for one in (*function.args.args, *function.args.kwonlyargs)}
    for node in ast.walk(function):
        for target, value in _bound(node):
            match target, value:
                case ast.Tuple(elts=targets), ast.Tuple(elts=values):
                    pairs: list[tuple[ast.AST, ast.AST]] = list(zip(targets, values, strict=True))
                case ast.Tuple(elts=targets), _:
                    pairs = [(one, value) for one in targets]
                case _:
                    pairs = [(target, value)]
            for one, bound in pairs:
                if isinstance(one, ast.Name):
                    names.setdefault(one.id, []).append(bound)
    return names


def _bound(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield target, value
        case ast.Call(func=ast.Attribute(value=ast.Name() as target, attr="append" | "extend"), args=[value]):
            yield target, value


def given_by(gates: Iterable[Gate]) -> frozenset[Reason]:
    return frozenset[Reason]().union(*(reasons_of(gate.__name__) for gate in gates))


def rows(field: str) -> set[Reason]:
    return {reason for reason in Reason if getattr(reason.row, field)}


def test_a_user_can_override_what_only_gates_of_coverage_give_and_nothing_else() -> None:
    assert rows("is_overridable") == given_by(COVERAGE) - given_by(REMOVAL) | WITHOUT_A_GATE | BY_READINESS


def test_no_reason_of_a_gate_of_every_removal_can_be_overridden() -> None:
    assert given_by(REMOVAL) & rows("is_overridable") == BY_READINESS


def test_every_reason_that_a_gate_can_give_names_a_gate_and_no_other_reason_does() -> None:
    assert rows("gate") == given_by(ALL_GATES)


def test_every_gate_is_found_by_its_name() -> None:
    assert {name: gate for name, gate in chains.GATES.items() if gate.__name__ == name} == chains.GATES
    assert set(chains.GATES.values()) == ALL_GATES


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.row.gate], ids=lambda reason: reason.name)
def test_the_gate_that_a_row_names_is_in_a_chain_and_can_give_the_reason(reason: Reason) -> None:
    assert reason.row.gate in {gate.__name__ for gate in ALL_GATES}
    assert reason in reasons_of(reason.row.gate)


@pytest.mark.parametrize(
    "reason", [reason for reason in Reason if reason in rows("is_overridable") - WITHOUT_A_GATE - BY_READINESS]
)
def test_the_gate_of_an_overridable_reason_is_one_of_coverage(reason: Reason) -> None:
    assert reason.row.gate in {gate.__name__ for gate in COVERAGE}


def test_the_reasons_of_tasks_that_are_waited_for_have_each_their_rank() -> None:
    waited_for = reasons_of("waits") | reasons_of("behind") | reasons_of("_waits") | reasons_of("cold_moves")
    assert rows("wait_rank") == waited_for
    assert sorted(reason.row.wait_rank for reason in waited_for) == list(range(1, len(waited_for) + 1))


@pytest.mark.parametrize(
    ("some", "all_"),
    [
        ("moves_tasks", "is_helped_by_rebalance"),
        ("triggers_outside_hold", "is_helped_by_rebalance"),
        ("is_group_moving", "gate"),
        ("sends_event_when_found", "is_warning"),
    ],
)
def test_what_one_field_says_needs_what_the_other_says(some: str, all_: str) -> None:
    assert rows(some) <= rows(all_)


def test_a_group_that_could_not_be_read_carries_no_other_reason() -> None:
    sources = (CORE.parent / "controller").rglob("*.py")
    written = {name for path in sources for name in re.findall(r"GroupUnreadable\(Reason\.(\w+)", path.read_text())}
    assert written == {reason.name for reason in READ_WITH_THE_GROUP}


def test_notes_and_next_steps_are_whole_sentences() -> None:
    parts = {text for reason in Reason for text in (reason.row.fact, reason.row.consequence, reason.next_step)} - {""}
    assert {text for text in parts if not re.fullmatch(r"[A-Z`].*\.", text)} == set()
