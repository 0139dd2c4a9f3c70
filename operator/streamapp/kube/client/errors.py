"""Everything that can go wrong between the operator and the API server.

    KubeError
    ├── NotFoundError     no such object, or no such kind
    ├── ConflictError     the object is another one, or another version, than the one that was judged
    │   └── ExpiredError            the version that a list or watch was to go on from is too old
    ├── RefusedError      the service account lacks a right, which is named
    │   └── UnauthenticatedError    it is not known who asks: no credentials, or none that count any more
    ├── InvalidError      the API server does not accept the object
    └── UnavailableError  no answer, too many requests, or a fault on the server's side: worth another try

Errors name the object, the cause and the next step, as those of `streamapp.kafka` do.
"""

from dataclasses import dataclass, field


@dataclass
class KubeError(Exception):
    """A request to the API server that gave no result."""

    what: str
    """The request and its object, for example `apply statefulsets demo/wordcount`."""
    why: str
    """The cause, in the API server's words."""
    next_step: str
    """What a person can do about it."""
    retry_after_seconds: float = field(default=0.0, kw_only=True, compare=False)
    """How long the API server asks to be left alone (`Retry-After`); 0 where it does not say."""

    def __str__(self) -> str:
        return f"{self.what}: {self.why} ({self.next_step})"


class NoAccessError(KubeError):
    """It is not known how to reach a cluster, or as whom."""


class NotFoundError(KubeError):
    """The object, its namespace or its kind does not exist."""


class ConflictError(KubeError):
    """A precondition did not hold: nothing was written."""


class ExpiredError(ConflictError):
    """The version is no longer kept: list again."""


class RefusedError(KubeError):
    """Not authenticated, or not allowed."""


class UnauthenticatedError(RefusedError):
    """Not authenticated."""


class InvalidError(KubeError):
    """The object was not accepted."""


class UnavailableError(KubeError):
    """The outcome is unknown: a write can have succeeded."""


_IN_A_NAMESPACE_THAT_GOES = "because it is being terminated"
"""In the words of the API server, which answers 403 (admission `NamespaceLifecycle`)."""


def of_status(status: int, what: str, why: str, retry_after_seconds: float = 0.0) -> KubeError:
    """Build the error for an HTTP status that is no success."""
    error = _of_status(status, what, why)
    error.retry_after_seconds = retry_after_seconds
    return error


def _of_status(status: int, what: str, why: str) -> KubeError:
    match status:
        case 404:
            return NotFoundError(what, why, "it was deleted, or the CustomResourceDefinition is not installed")
        case 409 | 410 | 412:
            conflict = ExpiredError if status == 410 else ConflictError
            return conflict(what, why, "it is read again and judged anew")
        case 403 if _IN_A_NAMESPACE_THAT_GOES in why:
            return ConflictError(what, why, "no action needed: the object goes with its namespace")
        case 401 | 403:
            refused = UnauthenticatedError if status == 401 else RefusedError
            return refused(what, why, "compare the operator's ClusterRole with that of its release")
        case 400 | 405 | 406 | 413 | 415 | 422:
            return InvalidError(what, why, "correct the field that the message names")
        case _:
            return UnavailableError(what, f"{status}: {why}", "it is tried again; see the API server")
