"""The watched namespaces: which of them can be listed, and of which all StreamApps are known.

Filled by the heartbeats of `http.probes` and by `process.resync`; read by the probes and by `process`. One namespace
that is deleted, or whose Role is gone, says nothing about the others: this only reports it. It lists nothing itself.
"""

import asyncio
from dataclasses import dataclass, field

import structlog

from streamapp.controller.metrics import Metrics
from streamapp.core.facts.snapshot import UnlistedNamespaces
from streamapp.kube.client.errors import KubeError, NotFoundError, RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import PODS, STATEFUL_SETS, STREAM_APPS, Kind

log = structlog.get_logger()

WATCHED = (STREAM_APPS, STATEFUL_SETS, PODS)
Namespace = str | None
"""None stands for all namespaces of the cluster."""
ALL: tuple[Namespace, ...] = (None,)


@dataclass(slots=True)
class WatchedNamespaces:
    """What this process knows of each of them."""

    names: tuple[Namespace, ...] = ALL
    metrics: Metrics | None = None
    first_round: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the StreamApps of every namespace were listed, or could not be listed, once."""
    _listed_at: dict[tuple[Namespace, str], float] = field(default_factory=dict)
    """When each kind was last listed in each namespace, on the loop's clock."""
    _unlisted: set[Namespace] = field(default_factory=set)
    """Namespaces that are reported as such."""
    _known: set[Namespace] = field(default_factory=set)
    """Namespaces whose StreamApps were listed."""
    _refusing: dict[Namespace, bool] = field(default_factory=dict)
    """Of namespaces that could not be listed: whether the API server's last answer says why."""

    def begin(self, now: float) -> None:
        """Count ages from now on."""
        self._listed_at = {(name, kind.plural): now for name in self.names for kind in WATCHED}

    def listed(self, namespace: Namespace, kind: Kind, now: float) -> None:
        """A kind was listed in a namespace."""
        self._listed_at[namespace, kind.plural] = now

    def report(self, namespace: Namespace, error: KubeError | None) -> None:
        """Log and show whether a namespace can be listed, where that has changed; `error` is why it cannot be."""
        if namespace is None:
            return  # all or nothing: the probes report it
        if self.metrics is not None:
            self.metrics.namespace_listed.labels(namespace).set(error is None)
        if error is not None and namespace not in self._unlisted:
            self._unlisted.add(namespace)
            next_step = "restore its Role with a chart upgrade, or take it out of watchNamespaces"
            log.warning("namespace cannot be listed", namespace=namespace, error=str(error), next_step=next_step)
        if error is None and namespace in self._unlisted:
            self._unlisted.discard(namespace)
            log.info("namespace can be listed again", namespace=namespace)

    def faults(self, now: float, limit_seconds: float) -> list[str]:
        """Which lists have failed for longer than the limit, as sentences; empty while one namespace can be listed."""
        overdue = {place: now - at for place, at in self._listed_at.items() if now - at > limit_seconds}
        if {name for name, _ in overdue} != set(self.names):
            return []
        return [
            f"watch: listing {kind}{'' if name is None else f' in {name}'} has failed for {age:.0f} s"
            for (name, kind), age in overdue.items()
        ]

    def has_listed(self, namespace: Namespace) -> bool:
        """The StreamApps of a namespace were listed completely; give whether this is the first time."""
        is_news = namespace not in self._known
        self._known.add(namespace)
        self._note_round()
        return is_news

    def could_not_list(self, namespace: Namespace, error: KubeError) -> bool:
        """The StreamApps of a namespace could not be listed; give whether none has been silent since.

        No news in the first round, for which all passes wait. An answer that refuses the list does not change by
        waiting; an error of the server does, and so does no answer.
        """
        was_silent = self.first_round.is_set() and bool(self.unlisted.silent)
        self._refusing[namespace] = _is_refused(error)
        self._note_round()
        return was_silent and not self.unlisted.silent

    def _note_round(self) -> None:
        if self._are_asked:
            self.first_round.set()

    @property
    def unlisted(self) -> UnlistedNamespaces:
        """The namespaces whose StreamApps this process has never listed, by name; `*` stands for all."""
        unknown = [name for name in self.names if name not in self._known]
        return UnlistedNamespaces(
            silent=tuple(sorted(_shown(name) for name in unknown if not self._refusing.get(name))),
            refusing=tuple(sorted(_shown(name) for name in unknown if self._refusing.get(name))),
        )

    @property
    def is_synced(self) -> bool:
        """Whether every namespace was asked for its StreamApps, and at least one has answered."""
        return bool(self._known) and self._are_asked

    @property
    def _are_asked(self) -> bool:
        return {*self._known, *self._refusing}.issuperset(self.names)


def _shown(namespace: Namespace) -> str:
    return "*" if namespace is None else namespace


def _is_refused(error: KubeError) -> bool:
    """Whether the API server knows who asks, and says that the namespace is gone or must not be listed."""
    return isinstance(error, RefusedError | NotFoundError) and not isinstance(error, UnauthenticatedError)
