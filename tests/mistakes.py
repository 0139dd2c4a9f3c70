"""What a user can get wrong about the agent, and how every mistake is described."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Wrong:
    """One mistake, and what its author is told."""

    says: str
    """In the operator's words."""
    changes: Json = field(default_factory=dict)
    name: str = "wordcount"
    server_says: str | None = None
    """In the API server's words, where they are not `<field>: … <sentence>`; empty where it lets the object pass."""


WRONG_AGENTS: Mapping[str, Wrong] = {
    "copies on demand without the agent": Wrong(
        "spec.learners.source can be OnDemand only if agent.enabled is true: the agent provides the assignor",
        {"spec.learners.source": "OnDemand"},
    ),
    "memory of tasks without the agent": Wrong(
        "spec.learners.memoryPerTask can be set only if agent.enabled is true: the agent reports the memory of its "
        "container",
        {"spec.learners.memoryPerTask": "64Mi"},
    ),
    "memory that is no amount": Wrong(
        "spec.learners.memoryPerTask must be a positive amount of memory, such as 64Mi, not '64MB'",
        {"spec.agent": {"enabled": True}, "spec.learners.memoryPerTask": "64MB"},
    ),
    "a source of copies that only a status has": Wrong(
        "spec.learners.source must be 'Standbys' or 'OnDemand', not 'None'",
        {"spec.learners.source": "None"},
        server_says='Unsupported value: "None": supported values: "Standbys", "OnDemand"',
    ),
    "a default of the agent's twice": Wrong(
        "spec.agent.defaults must not contain duplicates", {"spec.agent.defaults": ["leave", "leave"]}
    ),
    "a default that the agent does not know": Wrong(
        "spec.agent.defaults[0] must be 'assignor', 'heartbeat' or 'leave', not 'standbys'",
        {"spec.agent.defaults": ["standbys"]},
        server_says='Unsupported value: "standbys": supported values: "assignor", "heartbeat", "leave"',
    ),
    "a variable that no JVM reads": Wrong(
        "spec.agent.injectVia must be 'JDK_JAVA_OPTIONS' or 'JAVA_TOOL_OPTIONS', not 'JAVA_OPTS'",
        {"spec.agent.injectVia": "JAVA_OPTS"},
        server_says='Unsupported value: "JAVA_OPTS": supported values: "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"',
    ),
    "a port that is none": Wrong(
        "spec.agent.port must be at most 65535, not 70000",
        {"spec.agent.port": 70000},
        server_says="spec.agent.port in body should be less than or equal to 65535",
    ),
    "a certificate without a Secret": Wrong(
        "spec.agent.tls.secretRef is required",
        {"spec.agent": {"enabled": True, "tls": {}}},
        server_says="spec.agent.tls.secretRef: Required value",
    ),
    "a volume of the name of the agent's certificate": Wrong(
        "spec.template.spec.volumes must not have one called streamapp-agent-tls, which the operator adds",
        {
            "spec.agent": {"enabled": True},
            "spec.template.spec.volumes": [{"name": "streamapp-agent-tls", "emptyDir": {}}],
        },
        server_says="",
    ),
    "an option that the agent's would hide": Wrong(
        "spec.template.spec.containers[app].env must give JDK_JAVA_OPTIONS as a value, since the agent is added to it "
        "and valueFrom cannot be seen: state the value, or let spec.agent.injectVia name another variable than "
        "JDK_JAVA_OPTIONS",
        {
            "spec.agent": {"enabled": True},
            "spec.template.spec.containers.0.env": [
                {"name": "JDK_JAVA_OPTIONS", "valueFrom": {"configMapKeyRef": {"name": "jvm", "key": "options"}}}
            ],
        },
        server_says="",
    ),
    "options that may be hidden": Wrong(
        "spec.template.spec.containers[app].envFrom may set JAVA_TOOL_OPTIONS, which cannot be seen and would be "
        "hidden by the agent's: state in env the value that JAVA_TOOL_OPTIONS is to have, an empty one if none, or let "
        "spec.agent.injectVia name another variable than JAVA_TOOL_OPTIONS",
        {
            "spec.agent": {"enabled": True, "injectVia": "JAVA_TOOL_OPTIONS"},
            "spec.template.spec.containers.0.envFrom": [{"configMapRef": {"name": "jvm"}}],
        },
        server_says="",
    ),
    "the option twice": Wrong(
        "spec.template.spec.containers[app].env must not have JDK_JAVA_OPTIONS twice",
        {
            "spec.agent": {"enabled": True},
            "spec.template.spec.containers.0.env": 2 * [{"name": "JDK_JAVA_OPTIONS", "value": "-Xmx1g"}],
        },
        server_says="",
    ),
    "the agent's own variables": Wrong(
        "spec.template.spec.containers[app].env must not set STREAMAPP_AGENT_…, which the operator sets",
        {
            "spec.agent": {"enabled": True},
            "spec.template.spec.containers.0.env": [{"name": "STREAMAPP_AGENT_PORT", "value": "1"}],
        },
        server_says="",
    ),
    "the agent's folder": Wrong(
        "spec.template.spec.containers[app].volumeMounts must not mount anything at /streamapp/agent, where the agent "
        "goes",
        {
            "spec.agent": {"enabled": True},
            "spec.template.spec.volumes": [{"name": "tmp", "emptyDir": {}}],
            "spec.template.spec.containers.0.volumeMounts": [{"name": "tmp", "mountPath": "/streamapp/agent/"}],
        },
        server_says="",
    ),
    "the agent's volume": Wrong(
        "spec.template.spec.volumes must not have one called streamapp-agent, which the operator adds",
        {
            "spec.agent": {"enabled": True},
            "spec.template.spec.volumes": [{"name": "streamapp-agent", "emptyDir": {}}],
        },
        server_says="",
    ),
    "a container of the agent's name": Wrong(
        "spec.template.spec.containers must not have one called streamapp-agent, which the operator adds",
        {"spec.agent": {"enabled": True}, "spec.template.spec.containers.1.name": "streamapp-agent"},
        server_says="",
    ),
    "the agent's port": Wrong(
        "spec.agent.port must not be a port of container sidecar",
        {
            "spec.agent": {"enabled": True},
            "spec.template.spec.containers.1.ports": [{"containerPort": 7711}],
        },
        server_says="",
    ),
    "a port of the agent's name": Wrong(
        "spec.template.spec.containers[app].ports must not have one called streamapp-agent, which the operator adds",
        {
            "spec.agent": {"enabled": True},
            "spec.template.spec.containers.0.ports": [{"name": "streamapp-agent", "containerPort": 8080}],
        },
        server_says="",
    ),
}
