"""Rules about several fields of a StreamApp, each written once for the API server (CEL) and once for the operator.

The API server refuses what breaks one; the operator checks again, since an object may be older than the rule. Rules
about a change (`oldSelf`) exist for the API server only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a model."""

    cel: str
    message: str
    """Continues the field's name: `must …`, `cannot …`."""
    field: str
    """The field that the message is about, by its name in YAML."""
    holds: Callable[[Any], bool] | None = None
    """The same for a model; None for a rule about a change."""

    @property
    def schema(self) -> dict[str, str]:
        """The entry of `x-kubernetes-validations`."""
        return {"rule": self.cel, "message": self.message, "fieldPath": f".{self.field}"}


def unchangeable(why: str, *, cel: str = "self == oldSelf", **more: Any) -> Callable[[dict[str, Any]], None]:
    """What makes a field keep its first value, for its `json_schema_extra`, with what else belongs there."""

    def add_rule(schema: dict[str, Any]) -> None:
        rules = schema.setdefault("x-kubernetes-validations", [])
        rules.append({"rule": cel, "message": f"cannot be changed: {why}"})
        schema.update(more)

    return add_rule


class ApiModel(BaseModel):
    """A part of the resource: camel case outside, closed, unchangeable, every field described by its docstring."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )


class RuledModel(ApiModel):
    """A part with rules about several of its fields. Of most parts there are very many, and they have none."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _keeps_its_rules(self) -> Self:
        for rule in self.rules:
            if rule.holds is not None and not rule.holds(self):
                raise PydanticCustomError("rule", "{sentence}", {"sentence": rule.message, "field": rule.field})
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Add the rules to the schema that pydantic makes."""
        made = handler(schema)
        target = handler.resolve_ref_schema(made)
        target["x-kubernetes-validations"] = [rule.schema for rule in cls.rules]
        return made
