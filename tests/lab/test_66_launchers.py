"""Applications of Spring Boot and of Quarkus as pods under the operator, with learners on demand by the agent.

Both bring a class loader and a way to close of their own. Their images must be in the lab's cache before:
`python -m lab build --launchers`, as `make test PART=launchers` does.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from lab.build.launcher_images import NAMES, build_launcher_images
from lab.clusters.cluster import Session
from lab.clusters.embedded import import_image
from lab.clusters.kubectl import Kubectl
from lab.node.layout import Layout
from lab.scenarios.observed_app import ObservedApp
from lab.scenarios.stream_app import ON_DEMAND
from lab.settings import Settings
from tests.lab import on_demand
from tests.lab.on_demand import Scaled
from tests.lab.promises import require_no_record_lost

pytestmark = [pytest.mark.lab, pytest.mark.timeout(420)]
STATE = {"STATE_DIR": "/var/lib/streams"}
AGENT = {"agent": {"enabled": True, "injectVia": "JDK_JAVA_OPTIONS"}}
"""As the pages on Spring Boot and Quarkus have it, for an image that starts `java`."""


@pytest.fixture(scope="module")
def images(session: Session) -> dict[str, str]:
    """Import the images, and give their references by name."""
    settings = Settings.from_environment()
    built = build_launcher_images(settings)
    for image in built.values():
        import_image(Layout(settings.state), image, session)
    return {name: image.reference for name, image in built.items()}


@pytest.fixture(scope="module")
def kinds(
    kubectl: Kubectl,
    bootstrap: str,
    operator: None,  # noqa: ARG001 (it must run)
    images: dict[str, str],
) -> Iterator[dict[str, ObservedApp]]:
    """Deploy both with three pods under load."""

    def adapt(kind: str, one: ObservedApp) -> dict[str, Any]:
        template = one.app.resource(3)["spec"]["template"]
        (container,) = template["spec"]["containers"]
        container["image"] = images[kind]
        return {**ON_DEMAND, **AGENT, "template": template}

    with on_demand.applications(kubectl, bootstrap, dict.fromkeys(NAMES, STATE), adapt) as made:
        yield made


@pytest.fixture(scope="module")
def drained(kinds: dict[str, ObservedApp], bootstrap: str) -> dict[str, Scaled]:
    """Scale all of them down by one."""
    return on_demand.drain_the_last_of_three(kinds, bootstrap)


@pytest.fixture(scope="module")
def grown(kinds: dict[str, ObservedApp], drained: dict[str, Scaled], bootstrap: str) -> dict[str, Scaled]:
    """Scale those that were drained up by two."""
    assert drained.keys() == kinds.keys()
    return on_demand.grow_by_a_new_pod(kinds, bootstrap)


@pytest.mark.parametrize("kind", NAMES)
def test_the_agents_are_at_work_in_every_pod(kinds: dict[str, ObservedApp], kind: str) -> None:
    on_demand.require_agents(kinds[kind])


@pytest.mark.parametrize("kind", NAMES)
def test_a_pod_is_drained_before_it_goes(kinds: dict[str, ObservedApp], drained: dict[str, Scaled], kind: str) -> None:
    on_demand.require_drained(kinds[kind], drained[kind])


@pytest.mark.parametrize("kind", NAMES)
def test_a_pod_that_comes_gets_tasks_only_behind_learners(grown: dict[str, Scaled], kind: str) -> None:
    on_demand.require_grown(grown[kind])


@pytest.mark.parametrize("kind", NAMES)
def test_no_record_was_lost(kinds: dict[str, ObservedApp], kind: str) -> None:
    require_no_record_lost(kinds[kind])
