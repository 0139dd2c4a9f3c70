"""Everything that was read for one look at a migration. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from streamapp.api.http.messages import GroupTold, Tasks
from streamapp.api.names import TEMPLATE_HASH
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.errors import Unread
from streamapp.cli.model.app_view import AppView
from streamapp.cli.model.autoscalers import AutoscalersUnknown
from streamapp.cli.model.migration_record import Protocol, Record, UnreadableRecord, record_on

Json = dict[str, Any]
_NOT_ASKED = Unread("they were not asked for")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One look."""

    resource: Json
    """The StreamApp."""
    view: AppView
    group: GroupTold | Unread
    """The consumer group, as the operator last read it from the brokers."""
    statefulset: Json | Unread | None
    autoscalers: tuple[Json, ...] | AutoscalersUnknown
    """The HorizontalPodAutoscalers whose target is this StreamApp."""
    tasks: Tasks | Unread = _NOT_ASKED
    """Only for the plan."""
    pods: tuple[Json, ...] = ()
    """Only for the plan."""

    @property
    def now(self) -> datetime:
        """When it was read."""
        return self.view.now

    @property
    def name(self) -> str:
        """Of the StreamApp."""
        return self.view.streamapp.metadata.name

    @property
    def record(self) -> Record | UnreadableRecord | None:
        """The migration on record."""
        return record_on(self.resource)

    @property
    def streamapp(self) -> StreamApp | None:
        """The StreamApp; None if its spec is invalid."""
        return self.view.streamapp if isinstance(self.view.streamapp, StreamApp) else None

    @property
    def template(self) -> Mapping[str, Any]:
        """The pod template of the StreamApp."""
        return mapping(self.resource["spec"].get("template"))

    @property
    def container(self) -> Mapping[str, Any]:
        """The application's container."""
        containers = mappings(mapping(self.template.get("spec")).get("containers"))
        wanted = self.resource["spec"].get("container")
        return next((one for one in containers if not wanted or one.get("name") == wanted), {})

    @property
    def desired(self) -> int:
        """The desired replicas."""
        return self.view.streamapp.replicas

    @property
    def has_stopped(self) -> bool:
        """Whether the operator says that no pod is left, and nothing is on its way."""
        status = self.view.status
        is_closed = self.view.answer("Reconciling").value != "True"
        return self.view.is_of_this_spec and (status.replicas, status.stateful_set_replicas) == (0, 0) and is_closed

    @property
    def template_hash(self) -> str:
        """The hash of the StatefulSet's template; empty if it is not known."""
        body = self.statefulset
        metadata = mapping(mapping(body).get("metadata")) if isinstance(body, dict) else {}
        return str(mapping(metadata.get("annotations")).get(TEMPLATE_HASH, ""))

    @property
    def last_stop(self) -> datetime | None:
        """When the operator told the last pods to stop; None if it does not say."""
        return next((step.at for step in self.view.status.last_steps if step.to == 0), None)

    @property
    def protocol(self) -> Protocol | None:
        """The protocol of the group; None if it is not known."""
        told = self.group.protocol if isinstance(self.group, GroupTold) else None
        return None if told is None else Protocol(told)

    def is_empty_since(self, at: datetime) -> bool:
        """Whether brokers showed the group without members in a reading that is newer than a time."""
        group = self.group
        return isinstance(group, GroupTold) and not group.doubt and group.members == 0 and group.as_of >= at

    @property
    def ready_after(self) -> timedelta | None:
        """The longest time that a present pod took from its creation until it was ready; None if unknown."""
        taken = [one for one in map(_until_ready, self.pods) if one is not None]
        return max(taken, default=None)


def _until_ready(pod: Json) -> timedelta | None:
    conditions = mappings(mapping(pod.get("status")).get("conditions"))
    ready = next((one for one in conditions if one.get("type") == "Ready" and one.get("status") == "True"), None)
    created = pod["metadata"].get("creationTimestamp")
    changed = None if ready is None else ready.get("lastTransitionTime")
    if not created or not changed:
        return None
    return max(timedelta(0), datetime.fromisoformat(changed) - datetime.fromisoformat(created))
