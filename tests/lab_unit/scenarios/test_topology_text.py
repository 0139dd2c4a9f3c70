"""The demo application describes its shapes itself; needs Maven and what it fetches."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from lab.build.cache import Cache
from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.errors import LabError
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.stream_app import StreamAppScenario, topology_text
from lab.settings import REPOSITORY, Settings

pytestmark = [pytest.mark.registries, pytest.mark.timeout(600)]
TEXTS = REPOSITORY / "tests" / "core" / "facts" / "topologies"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    folder = tmp_path_factory.mktemp("cache")
    yield replace(Settings.from_environment(), cache=folder)
    Cache(folder).prune(keep=0, unused=timedelta(0))


@pytest.mark.parametrize(
    ("shape", "file"), [("counter", "counter"), ("stores", "counter-stores"), ("table", "counter-table")]
)
def test_the_texts_that_the_product_is_tested_with_are_those_of_the_application(
    shape: str, file: str, settings: Settings
) -> None:
    said = topology_text(DemoApplication("counter", {"TOPOLOGY": shape}), settings)
    assert said == (TEXTS / f"{file}.txt").read_text()


def test_a_shape_that_cannot_be_inferred_comes_with_its_text(settings: Settings) -> None:
    kubectl = Kubectl(Session((), {}))
    table = StreamAppScenario(kubectl, DemoApplication("rows", {"TOPOLOGY": "table"}), settings=settings)
    assert "(topics: [rows-table])" in table.resource(3)["spec"]["topology"]
    plain = StreamAppScenario(kubectl, DemoApplication("plain"), settings=settings)
    assert "topology" not in plain.resource(3)["spec"]


def test_a_setting_that_the_application_refuses_is_told_in_its_words(settings: Settings) -> None:
    with pytest.raises(LabError) as raised:
        topology_text(DemoApplication("counter", {"TOPOLOGY": "round"}), settings)
    assert "counter: TOPOLOGY: round is no topology; allowed: counter, echo, stores, table" in raised.value.why
