"""What an agent adds to a pod, and what it leaves alone."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.api.names import TEMPLATE_HASH
from streamapp.api.objects import manifests
from streamapp.kube.objects import from_json, trimmed
from tests.api.objects.test_manifests import HERE, SEEDER
from tests.streamapps import ABSENT, UID, a_streamapp

Json = dict[str, Any]

ON: Json = {"spec.agent.enabled": True}
OPTION = "-javaagent:/streamapp/agent/streamapp-agent.jar"
ENV = "spec.template.spec.containers.0.env"
WITH_KEY = replace(HERE, agent_image="registry.example/agent:1", accepted=lambda uid: f"hashes-of-{uid}")

BRINGER: Json = {
    "name": "streamapp-agent",
    "image": "registry.example/agent:1",
    "imagePullPolicy": "IfNotPresent",
    "args": ["--to=/streamapp/agent/streamapp-agent.jar", "--report=/dev/termination-log"],
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True,
    },
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "FallbackToLogsOnError",
    "volumeMounts": [{"name": "streamapp-agent", "mountPath": "/streamapp/agent"}],
}
READINESS: Json = {
    "httpGet": {"path": "/healthz", "port": 7711, "scheme": "HTTP"},
    "periodSeconds": 5,
    "timeoutSeconds": 2,
    "successThreshold": 1,
    "failureThreshold": 3,
}
VARIABLES: list[Json] = [
    {"name": "STREAMAPP_AGENT_PORT", "value": "7711"},
    {"name": "STREAMAPP_AGENT_TOKEN_SHA256", "value": f"hashes-of-{UID}"},
    {"name": "STREAMAPP_AGENT_POD_UID", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}},
    {"name": "STREAMAPP_AGENT_DEFAULTS", "value": "assignor,heartbeat,leave"},
]


def whole(changes: Json | None = None, here: manifests.Installation = WITH_KEY, live: Json | None = None) -> Json:
    return manifests.statefulset(a_streamapp({**ON, **(changes or {})}), here, live)


def pod(changes: Json | None = None, here: manifests.Installation = WITH_KEY, live: Json | None = None) -> Json:
    template: Json = whole(changes, here, live)["spec"]["template"]["spec"]
    return template


def hash_of(statefulset: Json) -> str:
    return str(statefulset["metadata"]["annotations"][TEMPLATE_HASH])


def test_everything_that_the_agent_needs_is_added_and_nothing_else_changes() -> None:
    without = manifests.statefulset(a_streamapp(), WITH_KEY)["spec"]["template"]["spec"]
    app, sidecar = without["containers"]
    assert pod() == {
        **without,
        "initContainers": [BRINGER, SEEDER],
        "volumes": [{"name": "streamapp-agent", "emptyDir": {"sizeLimit": "64Mi"}}],
        "containers": [
            {
                **app,
                "env": [{"name": "JDK_JAVA_OPTIONS", "value": OPTION}, *VARIABLES],
                "ports": [{"name": "streamapp-agent", "containerPort": 7711, "protocol": "TCP"}],
                "readinessProbe": READINESS,
                "volumeMounts": [
                    {"name": "streamapp-agent", "mountPath": "/streamapp/agent", "readOnly": True},
                    *app["volumeMounts"],
                ],
            },
            sidecar,
        ],
    }


def test_what_the_user_has_stays_in_its_place() -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "JDK_JAVA_OPTIONS", "value": "-Xmx$(A)g "},
        {"name": "B", "value": "2"},
    ]
    probe = {"httpGet": {"path": "/", "port": 8080}}
    made = pod(
        {
            ENV: env,
            "spec.template.spec.containers.0.ports": [{"containerPort": 8080}],
            "spec.template.spec.containers.0.readinessProbe": probe,
            "spec.template.spec.volumes": [{"name": "tmp", "emptyDir": {}}],
            "spec.template.spec.initContainers": [{"name": "mine", "image": "mine"}],
        }
    )
    container = made["containers"][0]
    option = {"name": "JDK_JAVA_OPTIONS", "value": f"-Xmx$(A)g {OPTION}"}
    assert container["env"] == [env[0], option, env[2], *VARIABLES]
    assert [port["containerPort"] for port in container["ports"]] == [8080, 7711]
    assert container["readinessProbe"] == probe
    assert [volume["name"] for volume in made["volumes"]] == ["tmp", "streamapp-agent"]
    assert [one["name"] for one in made["initContainers"]] == [
        "streamapp-seed-first",
        "streamapp-agent",
        "mine",
        "streamapp-seed",
    ]


TLS: Json = {"spec.agent.tls": {"secretRef": {"name": "agents"}}}
CERTIFICATE: Json = {
    "name": "streamapp-agent-tls",
    "secret": {
        "secretName": "agents",
        "optional": True,
        "items": [{"key": "tls.crt", "path": "tls.crt"}, {"key": "tls.key", "path": "tls.key"}],
    },
}


def test_with_tls_the_certificate_is_mounted_and_readiness_asks_over_https() -> None:
    plain, secured = pod(), pod(TLS)
    app, sidecar = plain["containers"]
    mount = {"name": "streamapp-agent-tls", "mountPath": "/streamapp/agent-tls", "readOnly": True}
    first, *others = app["volumeMounts"]
    readiness = {**READINESS, "httpGet": {**READINESS["httpGet"], "scheme": "HTTPS"}}
    folder = {"name": "STREAMAPP_AGENT_TLS_FOLDER", "value": "/streamapp/agent-tls"}
    container = {
        **app,
        "env": [*app["env"], folder],
        "readinessProbe": readiness,
        "volumeMounts": [first, mount, *others],
    }
    assert secured == {**plain, "volumes": [*plain["volumes"], CERTIFICATE], "containers": [container, sidecar]}


def test_another_secret_restarts_pods_and_its_content_does_not() -> None:
    other = {"spec.agent.tls": {"secretRef": {"name": "others"}}}
    assert len({hash_of(whole()), hash_of(whole(TLS)), hash_of(whole(other))}) == 3


@pytest.mark.parametrize(("changes", "secret"), [({}, None), (TLS, "agents")])
def test_a_pod_shows_with_which_secret_its_agent_was_made_also_from_the_cache(
    changes: Json, secret: str | None
) -> None:
    live = {"metadata": {"name": "counter-0", "uid": "pod-0"}, "spec": pod(changes)}
    for one in (live, trimmed.pod(live)):
        (found,) = from_json.pods([one], "counter", None, "")
        assert found.agent_tls_secret == secret


def test_a_pod_shows_at_which_port_its_agent_serves_also_from_the_cache() -> None:
    live = {"metadata": {"name": "counter-0", "uid": "pod-0"}, "spec": pod({"spec.agent.port": 9000})}
    assert [from_json.pods([one], "counter", None, "")[0].agent_port for one in (live, trimmed.pod(live))] == [9000] * 2


def test_a_volume_of_that_name_without_a_secret_never_means_plain_http() -> None:
    spec = {**pod(), "volumes": [{"name": "streamapp-agent-tls", "emptyDir": {}}]}
    (found,) = from_json.pods([{"metadata": {"name": "counter-0", "uid": "pod-0"}, "spec": spec}], "counter", None, "")
    assert found.agent_tls_secret == ""


PROBES: Json = {
    f"spec.template.spec.containers.0.{name}": {"tcpSocket": {"port": port}}
    for name, port in (("startupProbe", 1), ("livenessProbe", 2), ("readinessProbe", 3))
}


def probes(container: Json) -> Json:
    return {name: probe for name, probe in container.items() if name.endswith("Probe")}


@pytest.mark.parametrize("is_readiness", [True, False], ids=["with readiness", "without readiness"])
def test_no_probe_of_the_users_is_touched_and_readiness_is_added_only_where_there_is_none(
    *, is_readiness: bool
) -> None:
    stated = {path: probe for path, probe in PROBES.items() if is_readiness or not path.endswith("readinessProbe")}
    users = {path.rsplit(".", 1)[-1]: probe for path, probe in stated.items()}
    app, sidecar = pod(stated)["containers"]
    assert probes(app) == {"readinessProbe": READINESS, **users}
    assert probes(sidecar) == {}


def test_an_empty_readiness_probe_says_that_there_is_none() -> None:
    assert pod({"spec.template.spec.containers.0.readinessProbe": None})["containers"][0]["readinessProbe"] == READINESS


def test_readiness_asks_the_port_that_the_agent_has() -> None:
    probe = pod({"spec.agent.port": 9000})["containers"][0]["readinessProbe"]
    assert probe["httpGet"]["port"] == 9000


@pytest.mark.parametrize("changes", [{}, PROBES], ids=["no probe", "three probes"])
def test_without_an_agent_no_probe_is_added(changes: Json) -> None:
    stated = {path.rsplit(".", 1)[-1]: probe for path, probe in changes.items()}
    made = manifests.statefulset(a_streamapp(changes), WITH_KEY)["spec"]["template"]["spec"]["containers"]
    assert [probes(container) for container in made] == [stated, {}]


@pytest.mark.parametrize("value", ["", None, "  "])
def test_an_empty_option_of_the_users_says_that_there_is_none(value: str | None) -> None:
    stated = {"name": "JDK_JAVA_OPTIONS"} | ({} if value is None else {"value": value})
    env = pod({ENV: [stated], "spec.template.spec.containers.0.envFrom": [{"secretRef": {"name": "s"}}]})
    assert env["containers"][0]["env"][0] == {"name": "JDK_JAVA_OPTIONS", "value": OPTION}


def test_the_other_variable_can_be_chosen_and_the_first_is_left_alone() -> None:
    first = {"name": "JDK_JAVA_OPTIONS", "valueFrom": {"configMapKeyRef": {"name": "jvm", "key": "options"}}}
    env = pod({"spec.agent.injectVia": "JAVA_TOOL_OPTIONS", ENV: [first]})["containers"][0]["env"]
    assert env == [first, {"name": "JAVA_TOOL_OPTIONS", "value": OPTION}, *VARIABLES]


def test_port_and_defaults_are_what_the_user_chose() -> None:
    container = pod({"spec.agent.port": 9000, "spec.agent.defaults": ["leave", "assignor"]})["containers"][0]
    values = {one["name"]: one.get("value") for one in container["env"]}
    assert (values["STREAMAPP_AGENT_PORT"], values["STREAMAPP_AGENT_DEFAULTS"]) == ("9000", "assignor,leave")
    assert container["ports"][0]["containerPort"] == 9000
    nothing = pod({"spec.agent.defaults": []})["containers"][0]["env"]
    assert {"name": "STREAMAPP_AGENT_DEFAULTS", "value": ""} in nothing


def test_the_container_that_is_named_gets_the_agent() -> None:
    made = pod({"spec.container": "sidecar", "spec.state": ABSENT})
    assert "env" not in made["containers"][0]
    assert made["containers"][1]["env"][0] == {"name": "JDK_JAVA_OPTIONS", "value": OPTION}
    assert made["initContainers"] == [BRINGER]


def test_the_init_container_runs_as_the_application_does() -> None:
    made = pod({"spec.template.spec.containers.0.securityContext": {"runAsUser": 0, "runAsGroup": 7}})
    context = made["initContainers"][0]["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"], context["runAsNonRoot"]) == (0, 7, False)


def test_a_newer_operator_does_not_restart_pods() -> None:
    newer = replace(WITH_KEY, agent_image="registry.example/agent:2", agent_pull_policy="Always")
    assert hash_of(whole()) == hash_of(whole(here=newer))
    assert pod(here=newer)["initContainers"][0]["image"] == "registry.example/agent:2"


@pytest.mark.parametrize("changes", [{"spec.agent.port": 9000}, {"spec.agent.defaults": []}])
def test_what_the_user_changes_of_the_agent_restarts_them(changes: Json) -> None:
    assert hash_of(whole()) != hash_of(whole(changes))


def test_another_key_restarts_them() -> None:
    assert hash_of(whole()) != hash_of(whole(here=replace(WITH_KEY, accepted=lambda _: "others")))


def test_an_operator_without_a_key_brings_no_agent() -> None:
    assert whole(here=HERE) == manifests.statefulset(a_streamapp(), HERE)


def test_an_operator_that_lost_its_key_leaves_the_agents_as_they_are() -> None:
    live = whole()
    lost = replace(WITH_KEY, accepted=lambda _: "")
    assert whole(here=lost, live=live) == live
    assert manifests.template_is_written(a_streamapp(ON), lost, live)
    # What the user changes meanwhile still reaches the pods, and switching off does too.
    assert not manifests.template_is_written(a_streamapp({**ON, "spec.agent.port": 9000}), lost, live)
    assert not manifests.template_is_written(a_streamapp(), lost, live)


def test_an_operator_that_lost_its_key_keeps_the_agent_although_another_container_is_the_applications() -> None:
    lost = replace(WITH_KEY, accepted=lambda _: "")
    assert whole({"spec.container": "sidecar"}, here=lost, live=whole()) == whole({"spec.container": "sidecar"})


def test_a_template_without_the_agent_is_one_without_its_hashes() -> None:
    live = manifests.statefulset(a_streamapp(), HERE)
    assert manifests.template_is_written(a_streamapp(ON), HERE, live)
    assert not manifests.template_is_written(a_streamapp(ON), WITH_KEY, live)


@pytest.mark.parametrize(("here", "has_agent"), [(WITH_KEY, True), (HERE, False)])
def test_a_pod_shows_whether_it_was_made_with_an_agent(here: manifests.Installation, has_agent: bool) -> None:
    live = {"metadata": {"name": "counter-0", "uid": "pod-0"}, "spec": pod(here=here)}
    (found,) = from_json.pods([live], "counter", None, "")
    assert found.has_agent is has_agent
