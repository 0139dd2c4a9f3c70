"""The rules between StreamApps can fail: each is broken by hand in a world at rest, and the judge says so."""

from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from tests.prove.fleet.scenes import FAR, NEAR
from tests.prove.judge_raises import WITHIN, During
from tests.prove.kubelet import KEY
from tests.prove.play import picture_at_rest
from tests.prove.scenes import SCENES
from tests.prove.story import Disturbance
from tests.prove.virtual_time import VirtualLoop
from tests.prove.world import World, copied

Json = dict[str, Any]
AtRest = Callable[[str], World]
FIRST: Any = SimpleNamespace(number=1, installation=0)
SECOND: Any = SimpleNamespace(number=1001, installation=1)


@pytest.fixture
def at_rest() -> Iterator[Callable[[str], World]]:
    """Gives the world of a scene before anything happens."""
    with closing(VirtualLoop()) as loop:
        yield lambda scene: World(loop, SCENES[scene], 1, copied(picture_at_rest(SCENES[scene].ground)))


def noted(world: World, number: int, note: str = "by hand") -> None:
    """Change the StatefulSet of a StreamApp, and nothing that counts."""
    live = world.apps[number].statefulset()
    annotations = {**live["metadata"].get("annotations", {}), "note": note}
    world.store.put("statefulsets", {**live, "metadata": {**live["metadata"], "annotations": annotations}})


def of_another_installation(world: World) -> None:
    world.board.writer = FIRST
    noted(world, 1)


def of_a_quiet_neighbour(world: World) -> None:
    world.board.writer = FIRST
    noted(world, 2)


def in_a_quiet_group(world: World) -> None:
    world.judge.rebalances(FIRST, world.apps[1].group)


def in_the_group_of_another_operator(world: World) -> None:
    world.judge.evicts(SECOND, world.apps[0].group, [])


def for_a_rival(world: World) -> None:
    own = world.statefulset()
    world.happen("create@1", 0)
    world.board.writer = FIRST
    metadata = {"namespace": NEAR.namespace, "name": NEAR.name, "ownerReferences": _owner(world.apps[1].app())}
    world.store.put("statefulsets", {**own, "metadata": metadata})


def with_another_owner(world: World) -> None:
    live = world.statefulset()
    world.board.writer = FIRST
    world.store.put("statefulsets", {**live, "metadata": {**live["metadata"], "ownerReferences": []}})


def to_two_at_once(world: World) -> None:
    runs = [next(iter(one.nodes.alive().values())) for one in world.apps]
    world.judge.announces(FIRST, world.group, frozenset(), runs)


def of_others_processes(world: World) -> None:
    (mine, theirs) = (next(iter(one.nodes.alive().values())) for one in world.apps)
    world.judge.announces(FIRST, world.group, frozenset({theirs.process_id}), [mine])


def _owner(app: Json) -> list[Json]:
    return [{"uid": app["metadata"]["uid"], "controller": True}]


@pytest.mark.parametrize(
    ("scene", "breaks", "said"),
    [
        ("two-operators", of_another_installation, f"writes statefulsets of {FAR}, which belongs to another operator"),
        ("two-operators", in_the_group_of_another_operator, "evicts members in a group of another operator"),
        ("quiet-neighbours", of_a_quiet_neighbour, f"writes statefulsets of {FAR}, to which nothing has happened"),
        ("quiet-neighbours", in_a_quiet_group, "in the group of a StreamApp to which nothing has happened"),
        ("rival-in-hold", for_a_rival, f"writes statefulsets of {NEAR}, although {KEY} has its application ID"),
        ("two-apps", with_another_owner, "is owned by [], and not by its StreamApp"),
        ("two-drains", to_two_at_once, f"tells agents of {KEY} and {FAR} at once"),
        ("two-drains", of_others_processes, f"tells agents of {KEY} that others' processes leave"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_rule_between_streamapps_can_fail(
    at_rest: AtRest, scene: str, breaks: Callable[[World], None], said: str
) -> None:
    world = at_rest(scene)
    breaks(world)
    assert [said in wrong for wrong in world.judge.wrongs][:1] == [True], world.judge.wrongs


def test_what_is_done_for_the_own_streamapp_breaks_no_rule(at_rest: AtRest) -> None:
    world = at_rest("two-operators")
    world.board.writer = FIRST
    noted(world, 0)
    world.board.writer = SECOND
    noted(world, 1)
    world.judge.rebalances(SECOND, world.apps[1].group)
    assert world.judge.wrongs == []


def test_a_request_that_fails_excuses_a_late_raise_of_its_own_streamapp_alone(at_rest: AtRest) -> None:
    world = at_rest("two-apps")
    world.board.about = NEAR
    world.judge.struck(Disturbance("write", 3, "500"))
    for one in world.apps:
        one.judge.raises.wished(9, 3)
        one.judge.raises.written(9)
    assert [befell for one in world.apps for befell, _ in one.judge.raises.delays] == [During.NOTHING, During.ERROR]


@pytest.mark.parametrize(("kind", "others"), [("forbid", 0.0), ("silence", 10.0)])
def test_a_lost_namespace_gives_the_others_no_more_time_but_for_the_first_list(
    at_rest: AtRest, kind: str, others: float
) -> None:
    world = at_rest("namespace-silent")
    world.happen(f"{kind}@1", 100)
    for one in world.apps:
        one.judge.raises.struck(Disturbance("second", 1, "die"))
        one.judge.raises.wished(9, 3)
    due = [round(one.judge.raises._due(), 1) for one in world.apps]
    answers = 0.1
    assert due[0] == pytest.approx(WITHIN[During.DEATH] + others + answers, abs=0.05)
    assert due[1] == pytest.approx(100 + WITHIN[During.SILENCE] + answers, abs=0.05)
