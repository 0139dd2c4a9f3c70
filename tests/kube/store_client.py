"""The product's client with an object store in place of a socket; a double says what befalls a request on its way."""

from abc import abstractmethod
from collections.abc import Mapping

from streamapp.kube.client.client import Check, Json, KubeClient
from streamapp.kube.client.errors import of_status
from streamapp.kube.client.kinds import Kind
from tests.kube.object_store import ObjectStore, RefusalError, Request


class StoreClient(KubeClient):
    """Hands each request to `deliver`."""

    async def close(self) -> None:
        """Nothing is open."""

    @abstractmethod
    async def deliver(self, request: Request, what: str, last_check: Check | None) -> Json:
        """Give the answer to a request, or raise a KubeError.

        Args:
            request: Where it goes, and what it says.
            what: The same for an error, as `GET /api/v1/…`.
            last_check: Raises if the request must not be sent any more.
        """

    async def _ask(
        self,
        method: str,
        kind: Kind,  # noqa: ARG002 (as the real one)
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        *,
        content_type: str = "",
        last_check: Check | None = None,
    ) -> Json:
        request = Request.of(method, path, query or {}, body or {}, content_type)
        return await self.deliver(request, f"{method} {path}", last_check)


def answer_of(store: ObjectStore, request: Request, what: str, as_of: int | None = None) -> Json:
    """The store's answer, with a refusal as the client's error."""
    try:
        return store.answer(request, as_of)
    except RefusalError as refusal:
        raise of_status(refusal.status, what, str(refusal)) from refusal
