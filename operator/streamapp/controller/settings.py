"""Settings of the operator's process, read once from the environment; each has a default that needs no thought.

Read by `process` and handed on. What belongs to one application is in its StreamApp, not here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from streamapp.controller.apps.bindings import Bindings

PREFIX = "STREAMAPP_"


class InvalidSettingError(Exception):
    """A variable that cannot be used; names it, what it says, and why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every field is the environment variable `STREAMAPP_<NAME>`."""

    namespaces: tuple[str, ...] = ()
    """Namespaces that are watched, separated by commas; all where it is empty. A Role in each then suffices."""
    instance: str = "streamapp-operator"
    """Who tells Events: the pod's name, from the downward API."""
    lease_namespace: str = ""
    """Namespace of the Lease for which the operator's replicas stand: its own. Empty: no Lease, for one replica."""
    lease_name: str = "streamapp-operator"
    """Name of that Lease. Its holder is `<instance>_<something made up at every start>`."""
    lease_seconds: float = 15.0
    """So long a Lease must have stood still, by the watch of who stands by, before it is taken from another."""
    lease_renew_seconds: float = 10.0
    """So long the leader works on a renewal; then its process ends. Less than the above by more than clocks can err."""
    lease_retry_seconds: float = 2.0
    """Between two renewals, and between two looks of a replica that stands by."""
    installation: str = "streamapp-operator"
    """Label on what this operator makes. Two operators on one cluster need two, to tell what is whose."""
    seed_image: str = ""
    """Init container that prepares a pod's volume: must be of the operator's own release. No image is a default, since
    no registry is; the operator does not start without one."""
    agent_image: str = ""
    """Init container that brings the agent into a pod: of the operator's own release too."""
    agent_key_file: str = ""
    """File with the key from which agents' tokens are derived, in its first line; another one that agents accept may
    follow in a second. Empty: agents cannot be used."""
    port: int = 8080
    """Where `/healthz`, `/readyz` and `/metrics` are served."""
    metrics_tls_folder: str = ""
    """Folder with `tls.crt` and `tls.key`, which can change at any time: `/metrics` is then served over TLS on a port
    of its own, and not on the port of the probes. Empty: plain HTTP."""
    metrics_port: int = 8443
    """Where `/metrics` is served over TLS."""
    api_port: int = 8081
    """Where tasks, findings, history and metrics are served, on the loopback address alone: whoever may open a
    port-forward to the pod may read them."""
    watch_nodes: bool = False
    """Whether nodes are watched, which takes a right on the cluster. A node that must be drained then has the tasks of
    its pods moved away first, where `disruption.policy` is WhenCaughtUp."""
    node_taints: tuple[str, ...] = (
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
    )
    """Keys of the taints of a node that must be drained, separated by commas; a cordoned node must be drained, too."""
    log_level: str = "info"
    """`debug`, `info`, `warning` or `error`."""
    request_deadline_seconds: float = 10.0
    """For each request to the API server: longer than its own slow moments, shorter than a judgement's age."""
    kafka_deadline_seconds: float = 5.0
    """For each question to brokers: two of them must fit into the age that facts may have (10 s)."""
    allowed_brokers: tuple[str, ...] = ()
    """Patterns `host:port` of the brokers that applications may use, separated by commas; `*` stands for any letters,
    digits, dots and hyphens. Empty: every broker."""
    application_ids: tuple[str, ...] = ()
    """Application IDs that belong to namespaces, as `pattern=namespace namespace`, separated by commas. An ID that no
    pattern has is free for all."""
    restores_per_cluster: int = 0
    """Applications of one Kafka cluster (brokers and credentials) that may make learners at once. 0: all of them."""
    kafka_answer_bytes: int = 16_777_216
    """The longest answer of a broker that is read. A description of 200 members of 5,000 tasks has about 5 MiB."""
    poll_idle_seconds: float = 10.0
    """Between two looks at a group that has converged, at most; a fifth less by chance. While pods change it is looked
    at more often. A member seen less than 10 s before its container ended is not evicted, and input that comes between
    a join and the next look counts as lag: so this bounds how young a pod may die and still be cleared away at once."""
    poll_busy_seconds: float = 2.0
    """While something is under way; the error of every gap that is reported is about this."""
    poll_rebalance_seconds: float = 0.5
    """While a rebalance is under way or was asked for: the sooner its end is seen, the less input lies between a
    position and the end it is compared with."""
    resync_seconds: float = 50.0
    """Every kind is listed so often, whatever the watches say: an event that was never told costs less than 60 s. With
    more than 70 s the watches are not trusted from then on to the next list, and passes read live."""
    pass_gap_seconds: float = 0.5
    """At least this between two passes over one application; a starting pod alone makes about eight events."""
    backoff_first_seconds: float = 1.0
    """After a pass that failed; doubled with each failure in a row."""
    backoff_longest_seconds: float = 300.0
    """And never longer than this."""
    backoff_scaling_seconds: float = 15.0
    """Nor longer than this while desired and current replicas differ, or the current ones are not known."""
    stuck_seconds: float = 120.0
    """A key that waits or a pass that lasts longer than this makes `/healthz` fail: no honest pass lasts a minute."""
    heartbeat_seconds: float = 30.0
    """Between two reads that see whether the API server still lets us list."""
    cluster_name: str = ""
    """Name of this Kubernetes cluster, as the flight record has it on every line."""
    record_folder: str = ""
    """Where the flight record is written, on a volume of its own if it is to outlive the pod. Empty: nowhere."""
    record_bytes: int = 1_073_741_824
    """What its finished files may take together; the oldest are removed first."""
    record_age_seconds: int = 604_800
    """How long a finished file is kept."""
    record_close_seconds: float = 300.0
    """How long lines are gathered in one file before others may read it."""
    record_close_bytes: int = 67_108_864
    """And how large that file becomes at most, about."""
    record_bootstrap: str = ""
    """Kafka brokers that get the same lines (`host:port`, separated by commas). Empty: none."""
    record_topic: str = "streamapp-flight-records"
    """The topic there, which must exist."""
    record_config_folder: str = ""
    """Folder with client properties for those brokers, a file for each as a mounted Secret has them. Empty: none."""
    insight_file: str = ""
    """File with insight, as `streamapp-analytics` writes it: the status then has ranges of estimates. Empty: none."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Read the variables; InvalidSettingError for one that is malformed.

        Others of the same prefix mean nothing: Kubernetes itself makes some, from the names of Services.
        """
        field_names = {PREFIX + field.name.upper(): field.name for field in fields(cls)}
        variables = {name: text for name, text in environment.items() if name in field_names}
        values: dict[str, Any] = {}
        for name, text in variables.items():
            default = getattr(cls(), field_names[name])
            try:
                values[field_names[name]] = _READERS.get(field_names[name], _READERS_BY_TYPE[type(default)])(text)
            except ValueError as error:
                raise InvalidSettingError(f"{name}={text!r}: {error}; the default is {default!r}") from error
        return cls(**values)

    def require_images(self) -> None:
        """Raise InvalidSettingError where an image that goes into pods is not named."""
        for name in ("seed_image", "agent_image"):
            if not getattr(self, name):
                raise InvalidSettingError(
                    f"{PREFIX}{name.upper()} is empty: name the image of this release in your registry; "
                    "the chart does so by its value images.registry"
                )


def _names(text: str) -> tuple[str, ...]:
    return tuple(sorted({name.strip() for name in text.split(",") if name.strip()}))


def _bindings(text: str) -> tuple[str, ...]:
    names = _names(text)
    Bindings.read(names)
    return names


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 86_400:
        raise ValueError("it must be more than 0 and less than a day of seconds")
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 65_536:
        raise ValueError("it must be a port, 0 for any")
    return number


def _limit(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 100_000:
        raise ValueError("it must be a whole number up to 100000, 0 for no limit")
    return number


def _count(text: str) -> int:
    number = int(text)
    if not 0 < number < 2**63:
        raise ValueError("it must be a whole number of more than 0")
    return number


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("it must be true or false")
    return text == "true"


_READERS_BY_TYPE: Mapping[type, Callable[[str], object]] = {
    tuple: _names,
    float: _positive,
    int: _count,
    str: str,
    bool: _flag,
}
_READERS: Mapping[str, Callable[[str], object]] = {
    "port": _port,
    "api_port": _port,
    "metrics_port": _port,
    "application_ids": _bindings,
    "restores_per_cluster": _limit,
}
