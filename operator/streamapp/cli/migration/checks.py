"""What stands in the way of a migration, and what the user must know before: `findings(facts, to)`. Pure.

The rules are Kafka's ("Streams Rebalance Protocol" in its developer guide for Kafka Streams) and the operator's own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from streamapp.api.http.messages import GroupTold
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.api.validation.parse import InvalidStreamApp
from streamapp.cli.adoption.surroundings import managed_elsewhere
from streamapp.cli.errors import Unread
from streamapp.cli.migration.facts import Facts
from streamapp.cli.migration.steps import deletes_volumes
from streamapp.cli.model import autoscalers
from streamapp.cli.model.app_view import AppState
from streamapp.cli.model.autoscalers import AutoscalersUnknown
from streamapp.cli.model.migration_record import Protocol
from streamapp.core.doctor.diagnoses import Severity

RELEASES = ("4.2", "4.3", "4.4")
"""Brokers that the operator knows the assignor of."""
_STATIC_MEMBERS_SINCE = "4.4"
_STANDBYS = "num.standby.replicas"
IGNORED = (
    _STANDBYS,
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "acceptable.recovery.lag",
    "max.warmup.replicas",
    "probing.rebalance.interval.ms",
    "task.assignor.class",
    "rack.aware.assignment.tags",
    "rack.aware.assignment.strategy",
)
"""Properties of the application that the streams protocol ignores."""
_BY_GROUP = {
    _STANDBYS: "streams.num.standby.replicas",
    "session.timeout.ms": "streams.session.timeout.ms",
    "heartbeat.interval.ms": "streams.heartbeat.interval.ms",
}


class Check(Enum):
    """The name is the code; the value is (severity, title, fix). An error stands in the way."""

    severity: Severity
    title: str
    fix: str

    def __init__(self, severity: Severity, title: str, fix: str) -> None:
        self.severity, self.title, self.fix = severity, title, fix

    SpecInvalid = (Severity.ERROR, "The spec is invalid.", "Correct the spec first.")
    NotSettled = (
        Severity.ERROR,
        "The application is not settled.",
        "Wait until `kubectl streamapp status` says settled, or fix what it names.",
    )
    ManagedElsewhere = (
        Severity.ERROR,
        "Helm or a GitOps tool manages the StreamApp, and would write the former template again.",
        "Suspend its syncs until the migration is over and the new template is in Git, and add --despite-owner.",
    )
    OperatorSilent = (
        Severity.ERROR,
        "The operator does not say what group the brokers know.",
        "Find out with `kubectl streamapp doctor`.",
    )
    ProtocolAlready = (Severity.ERROR, "The group has the protocol already.", "No action needed.")
    GroupMissing = (
        Severity.ERROR,
        "The brokers know no group of this application.",
        "Wait until the application runs; an application that never ran needs no migration.",
    )
    BrokersTooOld = (
        Severity.ERROR,
        "The brokers do not serve the streams protocol.",
        "Upgrade them to 4.2.1 or newer, then: kafka-features.sh upgrade --feature streams.version=1",
    )
    BrokerReleaseUnknown = (
        Severity.ERROR,
        "The operator does not know the assignor of these brokers, and would hold every scale-down.",
        f"Use brokers of one of {', '.join(RELEASES)}, or a newer operator.",
    )
    StaticMembers = (
        Severity.ERROR,
        "The application has static members, and clients below 4.4 refuse to start so.",
        "Remove group.instance.id first.",
    )
    PatternSubscribed = (
        Severity.ERROR,
        "The topology subscribes by a pattern, which the streams protocol does not support.",
        "Name the topics.",
    )
    AgentMissing = (
        Severity.WARNING,
        "The StreamApp has no agent: with the streams protocol every scale-down will be held.",
        "Set agent.enabled: true (docs/agents.md).",
    )
    StandbysUnset = (
        Severity.WARNING,
        "The application asks for standbys, and the group has none with the streams protocol.",
        "Set them before: kafka-configs.sh --alter --entity-type groups --entity-name APPLICATION_ID --add-config "
        "streams.num.standby.replicas=1; or learners.source: OnDemand.",
    )
    SettingsIgnored = (
        Severity.WARNING,
        "These settings of the application no longer count.",
        "Set those that the group has (kafka-configs.sh --entity-type groups), and remove the others later.",
    )
    VolumesDeleted = (
        Severity.ERROR,
        "The volumes go with the pods: `state.retention.whenScaled` is Delete, and all pods stop.",
        "Set it to Retain until the migration is over.",
    )
    NoVolumes = (
        Severity.WARNING,
        "The StreamApp has no volumes: all state is restored from Kafka while the users wait.",
        "Set spec.state in a StreamApp of its own, or accept the time.",
    )
    PatchRelease = (
        Severity.WARNING,
        "After a migration, brokers 4.2.0 can fail to load the group (KAFKA-20254). 4.2.0 cannot be told from 4.2.1.",
        "Make sure that every broker has 4.2.1 or newer.",
    )
    VolumesIgnored = (
        Severity.WARNING,
        "Brokers below 4.4 assign the tasks without regard to what is on the volumes.",
        "Accept the restore of the tasks that come to another pod, or wait for brokers 4.4. The way back has none.",
    )
    NotVisible = (
        Severity.NOTE,
        "Not visible from outside: patterns in subscriptions, a KafkaClientSupplier, named topologies.",
        "With one of them the pods do not start; return with --abort.",
    )
    KedaDrives = (
        Severity.ERROR,
        "KEDA sets the replicas, and starts pods while the group is empty.",
        "Pause it until the migration is over: kubectl annotate scaledobject NAME autoscaling.keda.sh/paused=true",
    )
    AutoscalersUnread = (
        Severity.ERROR,
        "It is unknown which autoscalers there are.",
        "Ask for the right to list them, or add --despite-autoscaler if you know that there is none.",
    )
    AutoscalerParked = (
        Severity.NOTE,
        "An autoscaler sets the replicas.",
        "No action needed: its scale-ups are off until the migration is over, and its settings come back.",
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """One check that found something."""

    check: Check
    detail: str

    @property
    def document(self) -> dict[str, str]:
        """For programs."""
        check = self.check
        return {
            "code": check.name,
            "severity": check.severity.value,
            "title": check.title,
            "detail": self.detail,
            "fix": check.fix,
        }


def findings(facts: Facts, to: Protocol) -> tuple[Finding, ...]:
    """Check everything before the first step."""
    found = [*_of_the_streamapp(facts), *_of_the_group(facts, to), *_of_autoscalers(facts)]
    if to is Protocol.STREAMS:
        found += [*_of_the_application(facts)]
    return tuple(found)


def obstacles(found: Iterable[Finding], despite: frozenset[Check]) -> tuple[Finding, ...]:
    """Those that stand in the way and that the user does not override."""
    return tuple(one for one in found if one.check.severity is Severity.ERROR and one.check not in despite)


def _of_the_streamapp(facts: Facts) -> Iterator[Finding]:
    view = facts.view
    if isinstance(view.streamapp, InvalidStreamApp):
        yield Finding(Check.SpecInvalid, view.streamapp.sentence)
        return
    main = view.main_condition
    reason = "" if main is None else f" ({main.reason})"
    blocked = next(
        (
            why
            for is_so, why in (
                (view.user_hold is not None, f"a user holds it: {view.user_hold}"),
                (view.is_dry_run, "it is a dry run"),
                (view.streamapp.metadata.deletion_timestamp is not None, "it is being deleted"),
                (facts.desired == 0, "its desired replicas are 0: change the template yourself"),
                (view.state is not AppState.SETTLED, f"it is {view.state.value}{reason}"),
            )
            if is_so
        ),
        "",
    )
    if blocked:
        yield Finding(Check.NotSettled, blocked)
    if deletes_volumes(facts):
        yield Finding(Check.VolumesDeleted, f"{facts.desired} claims would be deleted")
    yield from (Finding(Check.ManagedElsewhere, one.detail) for one in managed_elsewhere(facts.resource, "StreamApp"))


def _of_the_group(facts: Facts, to: Protocol) -> Iterator[Finding]:
    group = facts.group
    if isinstance(group, Unread) or group.doubt:
        yield Finding(Check.OperatorSilent, group.why if isinstance(group, Unread) else group.doubt)
        return
    if group.protocol is None:
        yield Finding(Check.GroupMissing, f"state {group.state}")
    elif facts.protocol is to:
        yield Finding(Check.ProtocolAlready, to.value)
    elif to is Protocol.STREAMS:
        yield from _of_the_brokers(group)


def _of_the_brokers(group: GroupTold) -> Iterator[Finding]:
    release = group.broker_release
    if group.streams_supported is None:
        yield Finding(Check.OperatorSilent, "the brokers did not say whether they serve the streams protocol")
    elif not group.streams_supported:
        yield Finding(Check.BrokersTooOld, f"release {release or 'unknown'}, streams protocol off")
    elif release not in RELEASES:
        yield Finding(Check.BrokerReleaseUnknown, f"release {release or 'unknown'}")
    if group.static_members and release != _STATIC_MEMBERS_SINCE:
        yield Finding(Check.StaticMembers, f"{group.static_members} of {group.members} members")
    if release in RELEASES and release != _STATIC_MEMBERS_SINCE:
        yield Finding(Check.VolumesIgnored, f"release {release}")
    if release == RELEASES[0]:
        yield Finding(Check.PatchRelease, f"release {release}")


def _of_autoscalers(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.autoscalers, AutoscalersUnknown):
        yield Finding(Check.AutoscalersUnread, facts.autoscalers.why)
        return
    for one in autoscalers.autoscalers_of(facts.name, facts.autoscalers):
        if one.scaled_object is not None:
            yield Finding(Check.KedaDrives, f"ScaledObject {one.scaled_object}")
        else:
            yield Finding(Check.AutoscalerParked, f"HorizontalPodAutoscaler {one}")


def _of_the_application(facts: Facts) -> Iterator[Finding]:
    streamapp = facts.streamapp
    if streamapp is None:
        return
    if "topic pattern:" in streamapp.spec.topology:
        yield Finding(Check.PatternSubscribed, "spec.topology names a topic pattern")
    if not streamapp.spec.agent.enabled:
        yield Finding(Check.AgentMissing, "agent.enabled is false")
    if streamapp.spec.state is None:
        yield Finding(Check.NoVolumes, "spec.state is not set")
    ignored = dict(_ignored(facts))
    asks = ignored.get(_STANDBYS, "0") not in {"", "0"}
    if asks and streamapp.spec.learners.source is None:
        yield Finding(Check.StandbysUnset, f"{_STANDBYS}={ignored[_STANDBYS]}")
    if ignored:
        yield Finding(Check.SettingsIgnored, "; ".join(map(_told, ignored.items())))
    yield Finding(Check.NotVisible, "see docs/how-to/migrate-to-streams.md")


def _ignored(facts: Facts) -> Iterator[tuple[str, str]]:
    """The ignored properties that variables of the application's container seem to set, by their names."""
    for variable in mappings(mapping(facts.container).get("env")):
        spelt = str(variable.get("name", "")).upper().replace("-", "_").replace(".", "_")
        for setting in IGNORED:
            if spelt.endswith(setting.upper().replace(".", "_")):
                yield setting, str(variable.get("value", "?"))


def _told(setting: tuple[str, str]) -> str:
    name, value = setting
    instead = _BY_GROUP.get(name)
    return f"{name}={value}" + (f" (group setting {instead})" if instead else "")
