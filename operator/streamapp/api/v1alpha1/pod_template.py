"""The pod template of a StreamApp: an open object, of which only the containers' names are part of the schema.

What Kubernetes accepts in it is Kubernetes' business, and what a namespace allows is an admission policy's.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

MOST_CONTAINERS = 32
MOST_LEVELS = 100
"""A pod template of Kubernetes has a tenth of them."""

_OPEN: JsonSchemaValue = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class _Template:
    """Marks the field."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(_read)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        name = {"type": "string", "minLength": 1, "maxLength": 63, "description": "Name of the container."}
        container = {**_OPEN, "required": ["name"], "properties": {"name": name}}
        containers = {
            "type": "array",
            "description": "The containers of a pod, as in any pod.",
            "minItems": 1,
            "maxItems": MOST_CONTAINERS,
            "items": container,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        }
        spec = {
            **_OPEN,
            "description": "The pod, as in a StatefulSet; fields that are not named here are kept as they are.",
            "required": ["containers"],
            "properties": {"containers": containers},
        }
        metadata = {**_OPEN, "description": "Labels and annotations of the pods."}
        return {**_OPEN, "required": ["spec"], "properties": {"metadata": metadata, "spec": spec}}


PodTemplate = Annotated[dict[str, Any], _Template()]


def has_container(template: dict[str, Any], name: str) -> bool:
    """Tell whether a template has a container of this name."""
    return any(container["name"] == name for container in template["spec"]["containers"])


def mapping(value: object) -> Mapping[str, Any]:
    """An object of an open template; empty where there is none."""
    return value if isinstance(value, dict | Mapping) else {}  # (JSON is dicts, and asking for those is fast)


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects in a list of an open template; whatever else stands there is for the API server to refuse."""
    return [one for one in value if isinstance(one, dict | Mapping)] if isinstance(value, list) else []


_OF_TEMPLATE: Mapping[str, type] = {"metadata": dict, "spec": dict}
_OF_METADATA: Mapping[str, type] = {"labels": dict}
_OF_POD: Mapping[str, type] = {"initContainers": list, "volumes": list, "securityContext": dict}
_OF_CONTAINER: Mapping[str, type] = {
    "volumeMounts": list,
    "securityContext": dict,
    "env": list,
    "envFrom": list,
    "ports": list,
}
"""What the operator reads or adds to."""


def _read(value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("spec"), dict):
        raise PydanticCustomError("template", "must have a spec, as the pod template of a StatefulSet has")
    if _is_deeper(value, MOST_LEVELS):
        raise PydanticCustomError("template", "must not be nested deeper than {most} levels", {"most": MOST_LEVELS})
    containers = value["spec"].get("containers")
    if not isinstance(containers, list) or not 0 < len(containers) <= MOST_CONTAINERS:
        raise PydanticCustomError("template", "must have 1 to {most} containers", {"most": MOST_CONTAINERS})
    names = [mapping(one).get("name") for one in containers]
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
        raise PydanticCustomError("template", "must have a name for each container, and no name twice")
    _check_shapes(value, _OF_TEMPLATE)
    _check_shapes(mapping(value.get("metadata")), _OF_METADATA)
    _check_shapes(value["spec"], _OF_POD)
    for container in containers:
        _check_shapes(container, _OF_CONTAINER)
    return value


def _is_deeper(value: object, most: int) -> bool:
    """Whether objects and lists lie in each other in more levels; without recursion, since they can be very many."""
    level: list[Any] = [value]
    for _ in range(most):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for several in inner for one in several if isinstance(one, dict | list)]
        if not level:
            return False
    return True


def _check_shapes(part: Mapping[str, Any], shapes: Mapping[str, type]) -> None:
    for name, shape in shapes.items():
        if part.get(name) is not None and not isinstance(part[name], shape):
            word = "a list" if shape is list else "an object"
            raise PydanticCustomError("template", "must have {word} as {name}", {"word": word, "name": name})
