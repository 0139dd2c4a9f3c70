"""Deliberate faults in what the product does for several StreamApps; the sweep has to notice each.

`python -m tests.prove.fleet.mutants` prints in how many stories of its scene each is noticed.
"""

import asyncio
import random
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from streamapp.api.objects import manifests
from streamapp.controller.apps.apps import Application, Applications
from streamapp.controller.apps.memory import Memory
from streamapp.controller.apps.restore_ledger import RestoreLedger
from streamapp.controller.process import Operator
from streamapp.controller.reconcile.reconciler import Reconciler
from streamapp.core.actions import restore_claims
from streamapp.core.actions.announcement import Leaving
from streamapp.core.actions.decision import RestoreNeed
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import announced_pods
from streamapp.core.facts.snapshot import App, ConflictingStreamApp, RestorePlace
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.kinds import BUDGETS, PODS, Key, Kind
from streamapp.kube.client.object_cache import ObjectCache
from streamapp.kube.objects import owned_objects
from tests.prove.mutants import Mutant
from tests.prove.plans import systematic
from tests.prove.play import play, play_family
from tests.prove.scenes import SCENES
from tests.prove.story import Story

PLAYED = 20
"""Stories of each mutant, where it is counted."""


def _no_conflicts() -> Iterator[Any]:
    yield patch.object(Applications, "conflicting", lambda *_: ())


def _age_alone() -> Iterator[Any]:
    yield patch.object(ObjectCache, "can_control", lambda *_: False)


def _both_are_refused() -> Iterator[Any]:
    def served_instead(self: App, *, has_statefulset: bool) -> ConflictingStreamApp | None:
        return next(iter(self.conflicting), None)

    yield patch.object(App, "served_instead", served_instead)


def _memory_by_name() -> Iterator[Any]:
    """StreamApps of one name in two namespaces share what is remembered."""

    def get(self: Applications, key: Key, uid: str) -> Application:
        known = self._applications.get(key)
        if known is None:
            shared = (one.memory for other, one in self._applications.items() if other.name == key.name)
            known = self._applications[key] = Application(next(shared, Memory(uid)))
        return known

    yield patch.object(Applications, "get", get)


def _pods_of_all_namespaces() -> Iterator[Any]:
    sound = KubeClient.list

    async def listed(self: KubeClient, kind: Kind, namespace: str | None, *options: Any, **named: Any) -> list[Json]:
        return await sound(self, kind, None if kind == PODS else namespace, *options, **named)

    yield patch.object(KubeClient, "list", listed)


def _all_namespaces_or_none() -> Iterator[Any]:
    async def wait(self: Operator, key: Key) -> float | None:
        while self.namespaces.unlisted.names:
            await asyncio.sleep(0.1)
        return await self._reconcile(key)

    yield patch.object(Operator, "_pass", wait)


def _passes_in_turn() -> Iterator[Any]:
    """One pass at a time, a raise like everything else."""
    sound = Operator._pass

    async def wait(self: Operator, key: Key) -> float | None:
        turn: asyncio.Lock = self.__dict__.setdefault("turn", asyncio.Lock())
        async with turn:
            return await sound(self, key)

    yield patch.object(Operator, "_pass", wait)
    yield patch.object(Operator, "_raise_first", lambda *_: False)


def _anybodys_installation() -> Iterator[Any]:
    yield patch.object(manifests, "other_installation", lambda *_: "")


def _late_fence() -> Iterator[Any]:
    async def stand_by(self: Reconciler, key: Key, first_round: asyncio.Event) -> None:
        await first_round.wait()

    yield patch.object(Reconciler, "stand_by", stand_by)


def _budgets_of_a_namespace() -> Iterator[Any]:
    """The budgets of all StreamApps of a namespace are closed and opened with that of one."""
    sound = owned_objects.apply_budget

    async def apply_budget(client: KubeClient, manifest: Json, live: Json | None, owner: str, *check: Any) -> None:
        await sound(client, manifest, live, owner, *check)
        metadata = manifest["metadata"]
        for other in await client.list(BUDGETS, metadata["namespace"], ""):
            if other["metadata"]["name"] != metadata["name"]:
                place = {name: other["metadata"][name] for name in ("namespace", "name")}
                await client.apply(BUDGETS, {"metadata": place, "spec": manifest["spec"]})

    yield patch.object(owned_objects, "apply_budget", apply_budget)


def _no_take_over_of_rivals() -> Iterator[Any]:
    """A StreamApp that is gone stays a rival for ever."""

    def remove(self: Applications, key: Key) -> None:
        self.forget(key)

    yield patch.object(Applications, "remove", remove)


def _no_budget() -> Iterator[Any]:
    yield patch.object(RestoreLedger, "place", lambda self, *_: RestorePlace(most=self.most))


def _begun_is_free() -> Iterator[Any]:
    """What an earlier process began takes no place."""
    sound = restore_claims._of_a_drain

    def of_a_drain(evidence: Evidence, leaving: Leaving) -> RestoreNeed:
        is_begun = bool(announced_pods(evidence)) and not evidence.snapshot.place.is_held
        return RestoreNeed.NONE if is_begun else sound(evidence, leaving)

    yield patch.object(restore_claims, "_of_a_drain", of_a_drain)


def _refused_is_done() -> Iterator[Any]:
    """An invalid spec and a dry run end no learners, but take no place either."""
    yield patch.object(restore_claims, "_of_what_has_begun", lambda _: restore_claims.NO_CLAIM)


FLEET_MUTANTS = (
    Mutant("conflicts are not detected", _no_conflicts, "rival-in-hold"),
    Mutant("of rivals the older is served, whoever has a StatefulSet", _age_alone, "older-rival-new-process"),
    Mutant("both rivals are refused", _both_are_refused, "far-rival-in-hold"),
    Mutant("a rival that is gone is remembered", _no_take_over_of_rivals, "owner-deleted"),
    Mutant("memory is kept by name", _memory_by_name, "two-namespaces", is_long=True),
    Mutant(
        "pods are listed in all namespaces",
        _pods_of_all_namespaces,
        "two-drains",
        survives="a pod counts only where the UID of its StatefulSet says so",
    ),
    Mutant("passes wait for every namespace", _all_namespaces_or_none, "namespace-silent-new-process"),
    Mutant("passes wait for each other", _passes_in_turn, "namespace-silent"),
    Mutant("the installation is not asked", _anybodys_installation, "two-operators-in-a-namespace"),
    Mutant("the budget of learners is not asked", _no_budget, "budget-of-one"),
    Mutant("the budget is not asked before standbys are raised", _no_budget, "streams-budget-of-one", is_long=True),
    Mutant("learners of an earlier process take no place", _begun_is_free, "budget-new-process"),
    Mutant("learners of a StreamApp that became invalid take no place", _refused_is_done, "budget-invalid"),
    Mutant("budgets are closed by namespace", _budgets_of_a_namespace, "quiet-neighbours"),
    Mutant(
        "a hold is fenced when all namespaces are listed",
        _late_fence,
        "replicas-namespace-silent-in-hold",
        ("freeze",),
        "write",
    ),
)


def stories_of(mutant: Mutant, most: int = PLAYED) -> list[Story]:
    """The scene as it is, and stories of the kinds in which the mutant shows."""
    counts = play(Story(mutant.scene, 1)).counts
    drawn = [
        story
        for story in systematic(SCENES[mutant.scene], counts)
        if not mutant.kinds or story.kind in mutant.kinds
        if mutant.site in {"", story.disturbances[0].site}
    ]
    random.Random(1).shuffle(drawn)  # noqa: S311 (orders stories)
    return [Story(mutant.scene, 1), *drawn[: most - 1]]


def main() -> None:
    """Count."""
    for mutant in FLEET_MUTANTS:
        stories = stories_of(mutant)
        with mutant.at_work():
            failed = [one for one in play_family(stories) if one.wrongs]
        why = failed[0].wrongs[0] if failed else "nothing"
        print(f"{mutant.name} ({mutant.scene}): {len(failed)} of {len(stories)}: {why}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
