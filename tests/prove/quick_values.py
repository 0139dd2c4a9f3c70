"""Values that are made faster: the same classes, as frozen as before, with another `__init__`.

A story makes some hundred thousand values of the product, nearly all of them frozen dataclasses with slots. Their
`__init__` asks `object` for each field, since the class itself refuses assignments. Here it writes to the slots.
`python -m tests.prove` alone uses this; the stories of the unit tests have the classes as they ship.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from types import MemberDescriptorType
from typing import Any

PRODUCT = "streamapp."
_ABSENT = object()
"""Stands for an argument that a factory makes if it is not given."""


def make_values_quickly() -> int:
    """Give the frozen dataclasses of all modules of the product that are loaded their `__init__`; tell how many."""
    found = set(_classes())
    for one in found:
        one.__init__ = init_of(one)
    return len(found)


def _classes() -> Iterator[Any]:
    modules = [module for name, module in sys.modules.items() if name.startswith(PRODUCT)]
    for module in modules:
        for one in vars(module).values():
            if isinstance(one, type) and one.__module__ == module.__name__ and _is_made_by_slots(one):
                yield one


def _is_made_by_slots(one: Any) -> bool:
    """Whether all that its `__init__` does is to set its own slots."""
    params = one.__dict__.get("__dataclass_params__")
    if params is None or not params.frozen or not params.init or one.__init__.__code__.co_filename != "<string>":
        return False
    known = fields(one)
    is_whole = len(known) == len(one.__dataclass_fields__)  # no variable of the class, none of the `__init__` alone
    return is_whole and all(field.init and isinstance(_slot(one, field.name), MemberDescriptorType) for field in known)


def init_of(one: Any) -> Callable[..., None]:
    """Make an `__init__` with the same parameters.

    Args:
        one: A frozen dataclass with slots, of whose fields none is left out of its `__init__`.
    """
    known = fields(one)
    scope: dict[str, Any] = {"_absent": _ABSENT}
    ordered = [field for field in known if not field.kw_only], [field for field in known if field.kw_only]
    parameters = ["self", *(_parameter(field, scope) for field in ordered[0])]
    parameters += ["*", *(_parameter(field, scope) for field in ordered[1])] if ordered[1] else []
    body = [_assignment(field, one, scope) for field in known]
    body += ["self.__post_init__()"] if hasattr(one, "__post_init__") else []
    source = f"def __init__({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in body or ["pass"])
    exec(source, scope)  # noqa: S102 (as the module `dataclasses` does)
    made: Callable[..., None] = scope["__init__"]
    return made


def _parameter(field: Field[Any], scope: dict[str, Any]) -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=_absent"
    if field.default is MISSING:
        return field.name
    scope[f"_default_{field.name}"] = field.default
    return f"{field.name}=_default_{field.name}"


def _assignment(field: Field[Any], one: Any, scope: dict[str, Any]) -> str:
    scope[f"_set_{field.name}"] = _slot(one, field.name).__set__
    value = field.name
    if field.default_factory is not MISSING:
        scope[f"_make_{field.name}"] = field.default_factory
        value = f"_make_{field.name}() if {field.name} is _absent else {field.name}"
    return f"_set_{field.name}(self, {value})"


def _slot(one: Any, name: str) -> Any:
    return next((base.__dict__[name] for base in one.__mro__ if name in base.__dict__), None)
