"""`metadata` of a StreamApp, as far as the operator needs it, and the rule about its name."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

MOST_NAME = 52
"""A pod's label `controller-revision-hash` is the StatefulSet's name, a dash and ten characters, of 63 in all."""

NAME_PATTERN = "[a-z]([-a-z0-9]*[a-z0-9])?"
NAME_MESSAGE = (
    f"metadata.name must have at most {MOST_NAME} characters, start with a letter and consist of lower-case letters, "
    "digits and '-': pods, a Service and labels are named after it"
)
NAME_RULE = {
    "rule": f"size(self.metadata.name) <= {MOST_NAME} && self.metadata.name.matches(r'^({NAME_PATTERN})$')",
    "message": NAME_MESSAGE,
}


class Metadata(BaseModel):
    """The part of `metadata` that the operator reads; the API server sees to its form."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, extra="ignore", frozen=True)

    name: str
    namespace: str
    uid: str
    generation: int
    creation_timestamp: datetime
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
