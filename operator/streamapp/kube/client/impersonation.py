"""Acting as another user, as `kubectl --as` does: which headers a request carries.

Used by `kubeconfig` and `client`. The API server decides whether the own user may; so the audit log has both names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from streamapp.kube.client.errors import NoAccessError


class ImpersonationError(NoAccessError):
    """It is not clear whom to act as."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom to act as."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, str], ...] = ()

    def headers(self) -> Iterable[tuple[str, str]]:
        """Give the headers; one name can occur several times."""
        yield "Impersonate-User", self.user
        yield from (("Impersonate-Group", group) for group in self.groups)
        if self.uid:
            yield "Impersonate-Uid", self.uid
        # Percent-encoded, as client-go does: a header's name has no slash.
        yield from ((f"Impersonate-Extra-{quote(name.lower(), safe='')}", value) for name, value in self.extra)


def impersonation_of(what: str, user: Mapping[str, Any]) -> Impersonation | None:
    """Read whom a user of a kubeconfig acts as; None for himself. ImpersonationError as kubectl's."""
    extra = user.get("as-user-extra") or {}
    return impersonation(
        what,
        user.get("as") or "",
        tuple(str(group) for group in user.get("as-groups") or ()),
        str(user.get("as-uid") or ""),
        tuple((str(name), str(value)) for name, values in sorted(extra.items()) for value in values),
    )


def impersonation(
    what: str, user: str, groups: tuple[str, ...], uid: str, extra: tuple[tuple[str, str], ...] = ()
) -> Impersonation | None:
    """Put it together; None without a user. ImpersonationError for groups or a UID without a user."""
    if user:
        return Impersonation(user, groups, uid, extra)
    if groups or uid or extra:
        raise ImpersonationError(what, "it names groups, a UID or extras to act as, and no user", "name the user too")
    return None
