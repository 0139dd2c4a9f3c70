"""Which StreamApp a request or an object is about: by its name, by its label, or by the name of a pod or a claim."""

from typing import Any

from streamapp.api.names import APP_LABEL
from streamapp.kube.client.kinds import Key
from tests.kube.object_store import Request

Json = dict[str, Any]
NAMED_AS_THE_APP = {"streamapps", "statefulsets", "services", "poddisruptionbudgets"}


def app_of(request: Request) -> Key | None:
    """The StreamApp of a request; None where it is about several, or none."""
    if request.name:
        return app_of_object(request.plural, request.namespace, request.name)
    if request.plural == "events" and "regarding" in request.body:
        about = request.body["regarding"]
        return Key(about["namespace"], about["name"])
    asked = (part.partition("=") for part in request.query.get("labelSelector", "").split(",") if part)
    return next((Key(request.namespace, name) for label, _, name in asked if label == APP_LABEL and name), None)


def app_of_object(plural: str, namespace: str, name: str) -> Key | None:
    """The StreamApp of an object; None where its name does not say it."""
    if plural in NAMED_AS_THE_APP:
        return Key(namespace, name)
    if plural in {"pods", "persistentvolumeclaims"}:
        return Key(namespace, name.removeprefix("state-").rpartition("-")[0])
    return None
