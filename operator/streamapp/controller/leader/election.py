"""Stands for the Lease, renews it, gives it back: at any moment at most one replica of the operator believes it leads.

Run by `lifecycle`. Only this process's own clock counts, and of it only spans: a leader believes for `renew` seconds
from the sending of its last renewal that was answered; whoever stands by takes a Lease that it has seen stand still for
`lease` seconds, and writes it on exactly the version that stood still. Wall clocks are never compared.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from typing import NoReturn

import structlog

from streamapp.controller.leader.clock import seconds_since_boot
from streamapp.controller.leader.leadership import NotLeadingError, end_process
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError, NotFoundError, RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import Key
from streamapp.kube.objects import leases
from streamapp.kube.objects.leases import Lease, LeaseSpec

log = structlog.get_logger()

DRIFT = 0.1
"""The largest relative error of any clock."""
RELEASES = 3
"""So often giving back is tried."""
RELEASE_PAUSE_SECONDS = 1.0
"""After a try, if the API server wants to be left alone: a process that ends cannot wait for long."""
GIVEN_BACK = 1
"""`leaseDurationSeconds` of a Lease that its leader gave back; a holder can be taken out by hand, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTiming:
    """Seconds, see the settings of these names."""

    lease: float
    renew: float
    retry: float

    @property
    def request(self) -> float:
        """Deadline of each request: two of them, one after the other, must not take a renewal's whole time.

        Measured against the span of a renewal and not of a retry, so that a Lease is held on an API server that takes
        seconds to answer, which is when applications need to grow. With the defaults that is four seconds and a half.
        """
        return 0.45 * self.renew

    def fault(self) -> str:
        """What is wrong with them, as a sentence; empty where they fit each other."""
        if self.renew * (1 + DRIFT) >= self.lease * (1 - DRIFT):
            return (
                f"STREAMAPP_LEASE_RENEW_SECONDS={self.renew:g} must be less than "
                f"{self.lease * (1 - DRIFT) / (1 + DRIFT):g}, for STREAMAPP_LEASE_SECONDS={self.lease:g}: else two "
                "replicas whose clocks err could lead at the same moment"
            )
        if 3 * self.retry > self.renew:
            return (
                f"STREAMAPP_LEASE_RETRY_SECONDS={self.retry:g} must be a third of "
                f"STREAMAPP_LEASE_RENEW_SECONDS={self.renew:g} or less: a renewal that fails has to be tried again"
            )
        return ""


class Elector:
    """One replica's part in the election, a `leadership.Leadership`."""

    def __init__(
        self,
        client: KubeClient,
        key: Key,
        identity: str,
        timing: LeaseTiming,
        *,
        lost: Callable[[], object] = end_process,
        monotonic: Callable[[], float] = seconds_since_boot,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._key, self.identity, self._timing = client, key, identity, timing
        self._lost, self._monotonic, self._now = lost, monotonic, now
        self._lease: Lease | None = None
        self._still_since = -inf
        """Since when it is known to stand still, or to be gone after it was there."""
        self._is_current = False
        """No request has failed since the API server returned the version of `_lease`."""
        self._has_asked = False
        self._unanswered: LeaseSpec | None = None
        """What our last try to take it wrote, if that was neither answered nor refused."""
        self._asked_seconds = 0.0
        """How long the API server wants to be left alone, by its last answer."""
        self._seen_at = self._held_until = -inf
        self._fault = f"the Lease {key} was not read yet"

    @property
    def transitions(self) -> int:
        """How often the Lease has changed hands, as last seen; for a leader, the number of its own term."""
        return 0 if self._lease is None else self._lease.says.transitions

    @property
    def holder(self) -> str:
        """Who leads, as last seen."""
        return "" if self._lease is None else self._lease.says.holder

    def leads(self) -> bool:
        """Whether no other replica can lead at this moment."""
        return self._monotonic() < self._held_until

    def check(self) -> None:
        """Return if this process leads at this moment; else end it."""
        if not self.leads():
            self._lose(f"not renewed for {self._timing.renew:g} s; {self._fault or 'this process has stood still'}")

    async def confirm(self) -> None:
        """Ask the API server whether the Lease is still this process's."""
        self.check()
        self._verify_own(await leases.find(self._client, self._key))

    async def give_way(self, number: int) -> None:  # noqa: ARG002 (another Lease may have counted up to it)
        """Ask the API server whether the Lease is still this process's."""
        await self.confirm()

    def blind(self) -> str:
        """Why it is not known who leads."""
        return self._fault if self._monotonic() - self._seen_at > self._timing.renew else ""

    async def stand(self) -> None:
        """Look at the Lease again and again, and return when it is ours.

        RefusedError where the rights for that are missing, NotFoundError where the namespace is.
        """
        while not await self.look():
            until_due = self._still_since + self._patience() - self._monotonic()
            # No longer than half a renewal: whoever leads may be gone meanwhile.
            pause = max(self._pause(), min(self._asked_seconds, self._timing.renew / 2))
            await asyncio.sleep(until_due if 0 < until_due < pause else pause)

    async def look(self) -> bool:
        """Read the Lease once, take it if that is allowed, and return whether it is ours."""
        try:
            self._note_read(await leases.find(self._client, self._key))
            if self._may_take():
                await self._take()
        except ConflictError:
            self._unanswered = None  # another replica was faster
            return False
        except (RefusedError, NotFoundError) as error:
            if isinstance(error, UnauthenticatedError):
                return self._cannot_see(error)
            raise self._explained(error) from error
        except KubeError as error:
            return self._cannot_see(error)
        return self.leads()

    async def keep(self) -> None:
        """Renew again and again; ends the process when that has not succeeded for too long.

        An API server that wants to be left alone is, for half of the time that is left: the Lease outlives it.
        """
        pause = self._pause_once_held()
        while True:
            await asyncio.sleep(min(pause, self._seconds_left()))
            self.check()
            try:
                async with asyncio.timeout(self._seconds_left()):
                    await self.renew()
                pause = self._pause_once_held()
            except NotLeadingError:
                raise
            except (KubeError, TimeoutError) as error:
                asked = error.retry_after_seconds if isinstance(error, KubeError) else 0.0
                pause = max(self._pause(), min(asked, self._seconds_left() / 2))
                self._fault = str(error) or self._fault or "no answer in time"
                log.warning(
                    "lease not renewed", lease=str(self._key), error=self._fault, seconds_left=self._seconds_left()
                )

    async def renew(self) -> None:
        """Renew once; KubeError where it is not known that this was done."""
        if not self._is_current:
            self._verify_own(await leases.find(self._client, self._key))
        try:
            await self._write_own()
        except ConflictError:
            # The Lease was changed, taken or removed; or an earlier write of ours arrived after all.
            self._verify_own(await leases.find(self._client, self._key))
            await self._write_own()

    async def release(self) -> None:
        """Give the Lease back, so that another replica takes it at its next look."""
        if not self._has_asked:
            return
        self._is_current &= self._held_until != -inf  # else it may have become ours without an answer
        self._held_until = -inf
        for _ in range(RELEASES):
            try:
                await self._give_back()
            except KubeError as error:
                self._is_current, self._fault = False, str(error)
                await asyncio.sleep(min(error.retry_after_seconds, RELEASE_PAUSE_SECONDS))
            else:
                return
        log.warning("lease not released; it expires", lease=str(self._key), error=self._fault)

    async def _give_back(self) -> None:
        if not self._is_current:
            self._lease = await leases.find(self._client, self._key)
        if self._lease is not None and self.holder == self.identity:
            free = replace(self._lease.says, holder="", seconds=GIVEN_BACK, renewed_at=leases.stamp(self._now()))
            await leases.write(self._client, self._key, self._lease, free)
            log.info("lease released", lease=str(self._key), transitions=self.transitions)

    def _note_read(self, lease: Lease | None) -> None:
        """Note what was read; only a change of what it says starts its time anew."""
        before, now = self._lease, self._monotonic()
        self._seen_at, self._fault, self._asked_seconds = now, "", 0.0
        if lease is None:
            if self._is_current and before is not None:
                self._still_since, self._is_current = now, False
            return
        is_same = before is not None and self._is_current and (before.uid, before.says) == (lease.uid, lease.says)
        self._lease, self._is_current = lease, True
        if not is_same:
            self._still_since = now
            if before is None or before.says.holder != lease.says.holder:
                log.info("standby", lease=str(self._key), leader=self.holder or None)

    def _may_take(self) -> bool:
        if self._is_current and (self._is_given_back() or self._is_ours()):
            return True
        # A Lease that never existed had no holder. If a user removed it, or wrote a holder into it, the previous holder
        # can still believe that it leads.
        return self._monotonic() - self._still_since >= self._patience()

    def _is_ours(self) -> bool:
        """Our last try has arrived after all.

        Where our name stands there beside another's time, a person has written it, and the previous holder can still
        believe that it leads.
        """
        return (
            self._unanswered is not None
            and self._lease is not None
            and _term(self._lease.says) == _term(self._unanswered)
        )

    def _is_given_back(self) -> bool:
        return self._lease is not None and not self.holder and self._lease.says.seconds == GIVEN_BACK

    def _patience(self) -> float:
        return max(self._timing.lease, 0 if self._lease is None else self._lease.says.seconds)

    async def _take(self) -> None:
        is_ours, at = self._is_ours(), leases.stamp(self._now())
        before = self._lease.says if is_ours and self._lease is not None else None
        mine = LeaseSpec(
            holder=self.identity,
            seconds=self._timing.lease,
            transitions=self.transitions + (not is_ours),
            acquired_at=at if before is None else before.acquired_at,
            renewed_at=at,
        )
        self._has_asked, self._unanswered = True, mine
        asked_at, from_whom = self._monotonic(), self.holder
        if self._lease is not None and self._is_current:
            made = await leases.write(self._client, self._key, self._lease, mine)
        else:
            made = await leases.create(self._client, self._key, mine)
        self._note_written(made, asked_at)
        log.info("became leader", lease=str(self._key), transitions=self.transitions, previous=from_whom or None)

    async def _write_own(self) -> None:
        if self._lease is None:
            raise ConflictError(f"Lease {self._key}", "it was never held", "stand for it first")
        asked_at, at = self._monotonic(), leases.stamp(self._now())
        self._is_current = False
        says = replace(self._lease.says, seconds=self._timing.lease, renewed_at=at)
        self._note_written(await leases.write(self._client, self._key, self._lease, says), asked_at)

    def _note_written(self, lease: Lease, asked_at: float) -> None:
        """The Lease is ours from the moment of sending: no other replica can have seen the write before."""
        self._lease, self._is_current = lease, True
        self._seen_at, self._fault = self._monotonic(), ""
        self._still_since, self._held_until = self._seen_at, asked_at + self._timing.renew

    def _verify_own(self, lease: Lease | None) -> None:
        if lease is None or lease.says.holder != self.identity:
            self._lose("it is gone" if lease is None else f"it is held by {lease.says.holder or 'nobody'}")
        self._lease = lease

    def _lose(self, why: str) -> NoReturn:
        was_leading, self._held_until = self._held_until != -inf, -inf
        if was_leading:
            log.error("lease lost, the process ends", lease=str(self._key), why=why, transitions=self.transitions)
            self._lost()
        raise NotLeadingError(f"Lease {self._key}", why, "another replica goes on; this one stands by again")

    def _cannot_see(self, error: KubeError) -> bool:
        if not self._fault:
            log.warning("lease not read", lease=str(self._key), error=str(error))
        self._fault, self._asked_seconds = str(error), error.retry_after_seconds
        return False

    def _explained(self, error: KubeError) -> KubeError:
        what, why = f"Lease {self._key}: {error.what}", error.why
        if isinstance(error, NotFoundError):
            return NotFoundError(what, why, "set STREAMAPP_LEASE_NAMESPACE to the operator's own namespace")
        return RefusedError(
            what,
            why,
            f"bind the operator's service account to a Role in namespace {self._key.namespace} with the verbs get, "
            "create and patch on leases of coordination.k8s.io, as its release does; or unset "
            "STREAMAPP_LEASE_NAMESPACE and run one replica",
        )

    def _seconds_left(self) -> float:
        return max(0.0, self._held_until - self._monotonic())

    def _pause_once_held(self) -> float:
        """Until the next renewal: a slow answer has used up a part of the time, and the next one may be as slow."""
        return min(self._pause(), max(0.0, self._seconds_left() - self._timing.request))

    def _pause(self) -> float:
        """Never longer than asked for; spread, so that replicas do not ask in step."""
        return self._timing.retry * random.uniform(0.8, 1.0)  # noqa: S311 (spreads load, protects nothing)


def _term(says: LeaseSpec) -> tuple[str, int, str]:
    """What a holder writes once, when it takes the Lease, and no renewal changes."""
    return says.holder, says.transitions, says.acquired_at
