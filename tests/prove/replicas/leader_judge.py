"""What the judge asks of replicas: nobody sends anything while another replica holds the Lease (guarantee 2).

It reads the Lease as it really is at the moment of sending, when the last checks of the sender have passed. A write
that was sent in time and arrives late is for the judge of removals.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from streamapp.kube.client.kinds import LEASES
from tests.kube.object_store import ObjectStore, Request
from tests.prove.calls import Process, Switchboard


class _Replica(Protocol):
    identity: str

    def leads(self) -> bool: ...


class LeaderJudge:
    """One story's."""

    def __init__(
        self,
        store: ObjectStore,
        board: Switchboard,
        replicas: Callable[[], Sequence[_Replica]],
        wrong: Callable[[int, str], None],
    ) -> None:
        self._store, self._replicas, self._wrong = store, replicas, wrong
        board.sending = self._sends

    def _sends(self, process: Process, request: Request | None) -> None:
        """A request leaves a process: to the API server, or without one to brokers or agents."""
        if request is not None and (not request.is_write or request.plural == LEASES.plural):
            return
        sender = getattr(process, "identity", "")
        what = "a request to brokers or agents" if request is None else f"{request.method} {request.plural}"
        holder = self._holder()
        if holder != sender:
            self._wrong(2, f"{sender} sends {what} while {holder or 'nobody'} holds the Lease")
        leaders = sorted(one.identity for one in self._replicas() if one.leads())
        if len(leaders) > 1:
            self._wrong(2, f"{' and '.join(leaders)} believe that they lead")

    def _holder(self) -> str:
        lease = next((one.body for (plural, *_), one in self._store.objects.items() if plural == LEASES.plural), None)
        return "" if lease is None else str(lease["spec"].get("holderIdentity") or "")
