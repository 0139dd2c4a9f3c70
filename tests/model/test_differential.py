"""The model gives the answers of the real Java classes, task by task, for random cases.

`MODEL_CASES` cases for each assignor and version; `MODEL_STREAMS` and `MODEL_BROKERS` limit the versions.
"""

import json
import os
from random import Random

import pytest

from tests.model.kinds import BROKER, KINDS, STREAMS, Kind
from tests.model.reference import Reference, running
from tests.model.shrink import minimal

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

CASES = int(os.environ.get("MODEL_CASES", "10000"))
WANTED = {
    STREAMS: os.environ.get("MODEL_STREAMS", "").split(),
    BROKER: os.environ.get("MODEL_BROKERS", "").split(),
}
ALL = [
    (kind, version)
    for kind in KINDS
    for version in kind.versions
    if not WANTED[kind.part] or version in WANTED[kind.part]
]


@pytest.mark.parametrize(("kind", "version"), ALL, ids=lambda it: it if isinstance(it, str) else it.name)
def test_the_model_answers_as_the_java_class_does(kind: Kind, version: str) -> None:
    random = Random(f"{kind.name} {version}")  # noqa: S311 - the same cases in every run
    with running(kind.name, kind.part, version) as reference:
        for number in range(CASES):
            case = kind.case(random)
            if reference.answer(case) != kind.answer(case, version):
                pytest.fail(f"case {number}: " + _story(kind, version, reference, case))


def _story(kind: Kind, version: str, reference: Reference, case: dict[str, object]) -> str:
    least = minimal(case, lambda one: reference.answer(one) != kind.answer(one, version))
    shown = {"case": least, "java": reference.answer(least), "model": kind.answer(least, version)}
    return "\n".join(f"{name}: {json.dumps(value)}" for name, value in shown.items())
