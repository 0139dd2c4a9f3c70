"""Puts the parts together: nodes, scheduler, budgets, the Eviction API, who evicts, and the judge of evictions."""

import random
from collections.abc import Callable, Mapping

from tests.kube.object_store import ObjectStore
from tests.prove.calls import Switchboard
from tests.prove.evictions.eviction_api import BUDGETS, DisruptionController, EvictionApi
from tests.prove.evictions.evictor import Evictor
from tests.prove.evictions.judge import DrainJudge, EvictionJudge
from tests.prove.evictions.scheduler import Scheduler
from tests.prove.fleet.played_app import PlayedApp
from tests.prove.virtual_time import VirtualLoop

PATIENCE = 1_200.0
"""Seconds that the turns of three drained pods take at most, where evictions come in the worst order."""


class Cluster:
    """Of a scene that has nodes."""

    def __init__(self, loop: VirtualLoop, store: ObjectStore, board: Switchboard, app: PlayedApp, seed: int) -> None:
        chance = random.Random(f"cluster {seed}")  # noqa: S311 (plays a story)
        self._app = app
        self.scheduler = Scheduler(store, loop, chance, app.nodes)
        DisruptionController(store, loop, chance)
        api = EvictionApi(store, loop)
        self.evictor = Evictor(self.scheduler, api, loop, board, app.judge.notes)
        self.evictor.named = lambda ordinal: (app.key.namespace, f"{app.key.name}-{ordinal}")
        judge = EvictionJudge(
            *(app.judge, store, app.group, app.nodes, board, loop),
            is_draining=lambda: self.scheduler.has_drained_pod,
        )
        api.accepted = judge.accepted
        self._drains = DrainJudge(self.evictor, board, app.judge, loop)
        app.is_budget_right = self._is_budget_right
        app.may_drain = lambda: self.scheduler.has_drained_pod

    def deeds(self) -> Mapping[str, Callable[[int], object]]:
        """What can happen, by the name that a story has for it."""
        return self.evictor.deeds()

    def unrest(self, restores: float) -> str | None:
        """What has not ended yet; blames a drain that takes too long."""
        if self._app.desired() < 2:
            return None  # nothing can cover the only pod
        drains = [f"node-{number}" for one in self.evictor.drains for number in one.nodes]
        self._drains.look(restores)
        return f"{', '.join(drains)} are not empty" if drains else None

    def _is_budget_right(self) -> bool:
        """At rest it leaves no pod out; it may be open where copies are kept all the time, and not where on demand."""
        app = self._app
        budget = app.store.get(BUDGETS, app.key.namespace, app.key.name)
        if budget is None:
            return False
        if self.scheduler.has_drained_pod:
            return True
        is_plain = "matchExpressions" not in budget["spec"]["selector"]
        has_copies = not app.group.truth.shape.on_demand and app.desired() > 1
        return is_plain and budget["spec"]["maxUnavailable"] <= int(has_copies)
