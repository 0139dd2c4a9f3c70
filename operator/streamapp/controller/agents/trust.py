"""Whom the operator trusts as an agent: the authorities in the Secrets that pods were made with.

`agents.poller` has the Secrets read, each by its name, and `agents.access` asks for what follows. Which Secret counts
for a pod says the pod itself, never the StreamApp of today: during a rollout both kinds of pods are asked, each in its
own way. The operator uses `ca.crt` alone, and keeps nothing else of the Secret.

A Secret changes before the pods do: the kubelet brings the new files within two minutes. So the authorities of before
are trusted a while longer, or each rotation of an authority would silence all agents.
"""

import asyncio
import ssl
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from streamapp.agents.tls import MOST_AUTHORITIES_BYTES, AuthoritiesUnusableError, trusting
from streamapp.controller.apps.client_secrets import SecretRead, read_secret
from streamapp.controller.leader.clock import seconds_since_boot
from streamapp.kafka.secret_properties import SecretContent
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.kinds import Key

READ_SECONDS = 60.0
"""Between two reads of a Secret, while all its agents are trusted."""
DOUBT_SECONDS = 5.0
"""And while one is not."""
OVERLAP_SECONDS = 300.0
"""How long authorities are trusted that the Secret does not have any more."""
MOST_SECRETS = 5
"""Of one application: of the present template, and of those before."""
_AUTHORITIES = "ca.crt"
_SEE = "see docs/agents.md (TLS)"
_GRANT = f"create it, and name it in the chart's value `agent.tlsSecrets`; {_SEE}"


@dataclass(frozen=True, slots=True)
class Untrusted:
    """No agent with this Secret can be asked; says why, and what to do."""

    why: str


@dataclass(slots=True)
class _Trust:
    """What follows from one Secret."""

    read: SecretRead
    """With `ca.crt` alone."""
    read_at: float
    answer: ssl.SSLContext | Untrusted
    authorities: str = ""
    """The last that could be used; kept if the Secret has none any more, and used no longer."""
    former: str = ""
    former_until: float = float("-inf")


@dataclass(slots=True)
class AgentTrust:
    """Of all applications."""

    monotonic: Callable[[], float] = seconds_since_boot
    _known: dict[Key, dict[str, _Trust]] = field(default_factory=dict, init=False)

    async def refresh(
        self, client: KubeClient, key: Key, secrets: Iterable[str], doubtful: Collection[str] = ()
    ) -> None:
        """Read those Secrets of an application that are due; forget its others.

        Args:
            client: Reads them.
            key: Of the StreamApp.
            secrets: The names that its pods show.
            doubtful: Those with an agent that was not trusted the last time.
        """
        names = [name for name in sorted(set(secrets)) if name][:MOST_SECRETS]
        before = self._known.get(key, {})
        due = [name for name in names if self._is_due(before.get(name), is_doubtful=name in doubtful)]
        read = await asyncio.gather(*(self._read(client, key, name, before.get(name)) for name in due))
        known = {name: before[name] for name in names if name in before} | dict(zip(due, read, strict=True))
        if known:
            self._known[key] = known
        else:
            self._known.pop(key, None)

    def of(self, key: Key, secret: str) -> ssl.SSLContext | Untrusted:
        """Give what trusts the agents with this Secret."""
        trust = self._known.get(key, {}).get(secret)
        if trust is None:
            return Untrusted(f"secret {secret or 'of its volume'}: it was not read; {_SEE}")
        return trust.answer

    def forget(self, key: Key) -> None:
        """Drop what is known of an application that is gone."""
        self._known.pop(key, None)

    def _is_due(self, trust: _Trust | None, *, is_doubtful: bool) -> bool:
        if trust is None:
            return True
        now = self.monotonic()
        pause = DOUBT_SECONDS if is_doubtful or isinstance(trust.answer, Untrusted) else READ_SECONDS
        return now - trust.read_at >= pause or (bool(trust.former) and now >= trust.former_until)

    async def _read(self, client: KubeClient, key: Key, name: str, before: _Trust | None) -> _Trust:
        found = await read_secret(client, key.namespace, name, None if before is None else before.read)
        found = _authorities_alone(found)
        now = self.monotonic()
        if found.fault is not None:
            return _refused(before, found, now, f"{found.fault}; {_GRANT}")
        text = found.content.data.get(_AUTHORITIES, b"").decode("ascii", "replace").strip()
        if not text:
            return _refused(before, found, now, f"secret {name}: it has no `ca.crt`; {_SEE}")
        try:
            return await self._trust(found, now, text, before)
        except AuthoritiesUnusableError as error:
            return _refused(before, found, now, f"secret {name}: {error}")

    async def _trust(self, found: SecretRead, now: float, text: str, before: _Trust | None) -> _Trust:
        former, until = ("", now) if before is None else (before.former, before.former_until)
        if before is not None and before.authorities not in {"", text}:
            former, until = before.authorities, now + OVERLAP_SECONDS
        if now >= until or len(text) + len(former) >= MOST_AUTHORITIES_BYTES:
            former = ""
        answer = None if before is None or (before.authorities, before.former) != (text, former) else before.answer
        if answer is None or isinstance(answer, Untrusted):
            answer = await asyncio.to_thread(trusting, "\n".join(filter(None, (text, former))))
        return _Trust(found, now, answer, text, former, until)


def _authorities_alone(found: SecretRead) -> SecretRead:
    kept = {name: value for name, value in found.content.data.items() if name == _AUTHORITIES}
    return SecretRead(SecretContent(found.content.name, kept), found.fault)


def _refused(before: _Trust | None, found: SecretRead, now: float, why: str) -> _Trust:
    authorities = "" if before is None else before.authorities
    return _Trust(found, now, Untrusted(why), authorities)
