"""What Helm makes of the chart: safe by default, and consistent."""

import json
import re
from typing import Any

import pytest
import yaml

from lab.settings import REPOSITORY
from streamapp.api import crd, names
from streamapp.controller.apps.bindings import Binding, Bindings
from streamapp.controller.settings import Settings
from streamapp.kafka.connection.allowed_brokers import AllowedBrokers
from streamapp.kube.objects.rights import RIGHTS, RightScope
from tests.chart.rendering import ALL_ON, CASES, MINIMAL, NAMESPACED, REGISTRY, Json, Rendered, attempt, refusal, render

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
pytestmark = [pytest.mark.chart, pytest.mark.timeout(300)]

Rule = tuple[str, str, str, tuple[str, ...]]


@pytest.fixture(scope="module", params=CASES)
def rendered(request: pytest.FixtureRequest) -> Rendered:
    return render(CASES[request.param])


def rules(role: Json) -> set[Rule]:
    """Group, resource, verb and names."""
    return {
        (group, resource, verb, tuple(rule.get("resourceNames", ())))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def listed(where: RightScope, *, optional: bool = True) -> set[Rule]:
    """The same of the list that is the source."""
    return {
        (right.group, right.path, verb, ("streamapp-operator",) if right.named else ())
        for right in RIGHTS
        if right.where is where and (optional or not right.optional)
        for verb in right.verbs
    }


def test_cluster_mode_grants_the_listed_rights_and_no_others() -> None:
    found = render({})
    assert rules(found.one("ClusterRole")) == listed(RightScope.WATCHED)
    assert rules(found.one("Role", "streamapp-operator-lease")) == listed(RightScope.OWN)
    bound = [one for kind in ("ClusterRoleBinding", "RoleBinding") for one in found.of(kind)]
    assert sorted(one["roleRef"]["name"] for one in bound) == ["streamapp-operator", "streamapp-operator-lease"]


def test_namespaced_mode_grants_them_in_these_namespaces_and_nothing_in_the_cluster() -> None:
    found = render(NAMESPACED)
    roles = {
        one["metadata"]["namespace"]: one for one in found.of("Role") if one["metadata"]["name"] == "streamapp-operator"
    }
    assert {place: rules(role) for place, role in roles.items()} == dict.fromkeys(
        ("blue", "green"), listed(RightScope.WATCHED)
    )
    assert found.of("ClusterRoleBinding") == []
    bound = [one for one in found.of("RoleBinding") if one["metadata"]["name"] == "streamapp-operator"]
    assert sorted(one["metadata"]["namespace"] for one in bound) == ["blue", "green"]


@pytest.mark.parametrize(
    ("values", "kind", "places"), [({}, "ClusterRole", [None]), (NAMESPACED, "Role", ["blue", "green"])]
)
def test_an_object_named_after_the_installation_keeps_a_second_release_of_it_from_the_same_scope(
    values: Json, kind: str, places: list[str | None]
) -> None:
    found = [
        (one["kind"], one["metadata"].get("namespace"), one["rules"])
        for one in render({**values, "installation": "blue-team"}).objects
        if one["metadata"]["name"] == "streamapp-installation-blue-team"
    ]
    assert found == [(kind, place, []) for place in places]


def test_each_optional_right_can_be_left_out() -> None:
    def granted(**rbac: bool) -> set[str]:
        return {rule[1] for rule in rules(render({"rbac": rbac}).one("ClusterRole"))}

    assert granted() - granted(autoscalers=False) == {"horizontalpodautoscalers"}
    assert granted() - granted(quotas=False) == {"resourcequotas"}
    assert rules(render({"rbac": {"autoscalers": False, "quotas": False}}).one("ClusterRole")) == listed(
        RightScope.WATCHED, optional=False
    )


def test_no_role_of_the_operator_reads_secrets_but_those_that_are_named() -> None:
    assert not any(
        "secrets" in rule[1] for kind in ("ClusterRole", "Role") for one in render({}).of(kind) for rule in rules(one)
    )
    found = render(ALL_ON)
    of_secrets = {
        (one["metadata"]["namespace"], *rule) for one in found.of("Role") for rule in rules(one) if rule[1] == "secrets"
    }
    named = {("orders", "kafka"), ("billing", "kafka"), ("orders", "agents")}
    assert of_secrets == {(place, "", "secrets", "get", (name,)) for place, name in named}
    # One that is named twice has one Role: a second of its name would be refused.
    assert len([one for one in found.of("Role") if "-secret-" in one["metadata"]["name"]]) == len(named)


def test_no_role_has_a_wildcard(rendered: Rendered) -> None:
    granted = [rule for kind in ("ClusterRole", "Role") for role in rendered.of(kind) for rule in rules(role)]
    assert granted
    assert [rule for rule in granted if "*" in rule[:3]] == []


def test_view_reads_edit_scales_and_neither_is_bound_by_the_chart() -> None:
    found = render({})
    assert {verb for *_, verb, _ in rules(found.one("ClusterRole", "streamapp-operator-view"))} == {
        "get",
        "list",
        "watch",
    }
    edit = rules(found.one("ClusterRole", "streamapp-operator-edit"))
    assert {verb for _, resource, verb, _ in edit if resource == "streamapps/scale"} == {"update", "patch"}
    assert {resource for _, resource, _, _ in edit} == {"streamapps", "streamapps/scale"}


def test_pods_keep_to_the_restricted_standard(rendered: Rendered) -> None:
    for pod in rendered.pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        assert {next(iter(set(volume) - {"name"})) for volume in pod.get("volumes", ())} <= {
            "configMap",
            "emptyDir",
            "secret",
            "persistentVolumeClaim",
        }
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            }
            assert set(container["resources"]) == {"requests", "limits"}


def test_images_are_of_the_charts_version_and_never_latest(rendered: Rendered) -> None:
    version = yaml.safe_load((REPOSITORY / "charts" / "streamapp-operator" / "Chart.yaml").read_text())["appVersion"]
    images = {container["image"] for pod in rendered.pods() for container in pod["containers"]}
    of_jobs = {f"{REGISTRY}/analytics:{version}"} if rendered.of("CronJob") else set()
    assert images == {f"{REGISTRY}/operator:{version}"} | of_jobs
    environment = environment_of(rendered)
    assert environment["STREAMAPP_SEED_IMAGE"] == f"{REGISTRY}/seed:{version}"
    assert environment["STREAMAPP_AGENT_IMAGE"] == f"{REGISTRY}/agent:{version}"


def environment_of(found: Rendered) -> dict[str, str]:
    """What the operator's process reads, as far as it is written down."""
    (container,) = found.one("Deployment")["spec"]["template"]["spec"]["containers"]
    by_field = {"metadata.name": "pod-1", "metadata.namespace": "streamapp-system"}
    return {
        each["name"]: each["value"] if "value" in each else by_field[each["valueFrom"]["fieldRef"]["fieldPath"]]
        for each in container["env"]
    }


def volumes_of(found: Rendered) -> dict[str, Json]:
    """Of the operator's pods, by name."""
    return {volume["name"]: volume for volume in found.one("Deployment")["spec"]["template"]["spec"]["volumes"]}


def mounts_of(found: Rendered) -> dict[str, Json]:
    """Of the operator's container, by the volume's name."""
    (container,) = found.one("Deployment")["spec"]["template"]["spec"]["containers"]
    return {mount["name"]: mount for mount in container["volumeMounts"]}


def test_a_digest_wins_over_a_tag() -> None:
    digest = f"sha256:{'0' * 64}"
    found = render({"images": {"operator": {"tag": "1", "digest": digest}}})
    (container,) = found.one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"{REGISTRY}/operator@{digest}"


def test_an_image_of_ones_own_needs_no_registry() -> None:
    own = {name: {"repository": f"own.example/{name}"} for name in ("operator", "seed", "agent")}
    found = render({"images": {"registry": "", **own}})
    (container,) = found.one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("own.example/operator:")


def test_without_a_registry_nothing_is_installed_and_one_sentence_says_what_to_set() -> None:
    assert "images.registry is empty" in refusal({"images": {"registry": ""}})
    assert "--set images.registry=registry.example/streamapp" in refusal({"images": {"registry": ""}})


def test_the_operator_reads_every_variable_as_the_values_say() -> None:
    environment = environment_of(render({**ALL_ON, **NAMESPACED}))
    settings = Settings.from_environment(environment)
    assert (settings.namespaces, settings.poll_idle_seconds, settings.lease_seconds) == (("blue", "green"), 20, 30)
    assert (settings.lease_namespace, settings.lease_name) == ("streamapp-system", "streamapp-operator")
    known = {f"STREAMAPP_{name.upper()}" for name in Settings.__slots__}
    assert set(environment) - known == {one["name"] for one in ALL_ON["extraEnv"]}


def test_two_replicas_have_a_lease_a_budget_and_a_rolling_update() -> None:
    found = render({})
    assert found.one("Deployment")["spec"]["replicas"] == 2
    assert found.one("Deployment")["spec"]["strategy"]["type"] == "RollingUpdate"
    assert found.one("PodDisruptionBudget")["spec"]["minAvailable"] == 1


def test_without_a_lease_there_is_one_replica_and_never_a_second() -> None:
    found = render(MINIMAL)
    assert found.one("Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert "STREAMAPP_LEASE_NAMESPACE" not in environment_of(found)
    refused = attempt({"leaderElection": {"enabled": False}})
    assert refused.returncode != 0
    assert "replicas: more than one needs leaderElection.enabled" in refused.stderr


def test_the_definition_is_the_generated_one_and_stays_when_the_chart_goes() -> None:
    found = render({}).one("CustomResourceDefinition", "streamapps.streamapp.dev")
    assert found["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    del found["metadata"]["labels"]
    assert found == yaml.safe_load((REPOSITORY / crd.PATH).read_text())
    gone = render({"crds": {"keep": False}}).one("CustomResourceDefinition", "streamapps.streamapp.dev")
    assert "annotations" not in gone["metadata"]


def test_every_policy_is_bound_and_fails_closed() -> None:
    for case in ({}, ALL_ON, NAMESPACED):
        found = render(case)
        policies = {one["metadata"]["name"]: one["spec"] for one in found.of("ValidatingAdmissionPolicy")}
        bound = {one["spec"]["policyName"] for one in found.of("ValidatingAdmissionPolicyBinding")}
        parts = ["statefulsets", "scale", "templates", "operator", *(["tenants"] if case is ALL_ON else [])]
        assert bound == set(policies) == {f"streamapp-operator-{part}" for part in parts}
        assert {spec["failurePolicy"] for spec in policies.values()} == {"Fail"}


ADDRESSES = (
    "a.kafka.svc:9092",
    "A.kafka.svc:9092",
    "a.kafka.svc:9093",
    "a.kafka.svc.evil.org:9092",
    "broker-1xexample.org:9093",
)


def test_the_policy_of_tenants_has_the_operators_own_lists() -> None:
    found = render(ALL_ON)
    settings = Settings.from_environment(environment_of(found))
    brokers, ids = (
        one["expression"]
        for one in found.one("ValidatingAdmissionPolicy", "streamapp-operator-tenants")["spec"]["validations"]
    )
    expression = json.loads(re.findall(r'matches\((".*")\)', brokers)[0])
    allowed = AllowedBrokers(settings.allowed_brokers)
    for address in ADDRESSES:
        host, _, port = address.rpartition(":")
        assert bool(re.search(expression, address)) is allowed.allow(host, int(port)), address
    assert Bindings.read(settings.application_ids) == Bindings((Binding("orders*", frozenset({"shop", "test"})),))
    assert (
        ids == '!object.spec.?applicationId.orValue("").matches("^orders.*$") || request.namespace in ["shop","test"]'
    )


def test_the_guard_watches_the_labels_and_records_that_the_operator_writes() -> None:
    spec = render({}).one("ValidatingAdmissionPolicy", "streamapp-operator-statefulsets")["spec"]
    variables = {each["name"]: yaml.safe_load(each["expression"]) for each in spec["variables"]}
    assert variables == {
        "labels": [names.APP_LABEL, names.OPERATOR_LABEL, names.MANAGED_BY_LABEL],
        "annotations": [names.HOLD_RECORD, names.HOLD_GENERATION, names.TEMPLATE_HASH],
    }
    (selected,) = spec["matchConstraints"]["objectSelector"]["matchExpressions"]
    assert selected == {"key": names.OPERATOR_LABEL, "operator": "In", "values": [Settings().installation]}


@pytest.mark.guarantee(4)
@pytest.mark.parametrize(
    "field",
    [
        "persistentVolumeClaimRetentionPolicy.?whenScaled",
        "persistentVolumeClaimRetentionPolicy.?whenDeleted",
        "updateStrategy.?type",
        "ordinals.?start",
        "template.spec",
    ],
)
def test_the_guard_compares_the_fields_by_which_kubernetes_restarts_pods_and_deletes_claims(field: str) -> None:
    spec = render({}).one("ValidatingAdmissionPolicy", "streamapp-operator-statefulsets")["spec"]
    compared = [each["expression"] for each in spec["validations"] if field in each["expression"]]
    assert [text.count(field) for text in compared] == [2], "once of the new object and once of the old one"


def test_nothing_of_prometheus_is_made_where_it_is_not_served() -> None:
    kinds = {"PodMonitor", "PrometheusRule", "ConfigMap"}
    assert kinds & {each["kind"] for each in render({}).objects} == set()
    assert kinds - {each["kind"] for each in render(ALL_ON).objects} == set()


def endpoint_of(found: Rendered) -> Json:
    (endpoint,) = found.one("PodMonitor")["spec"]["podMetricsEndpoints"]
    return dict(endpoint)


def test_metrics_have_a_port_with_tls_where_a_certificate_is_named_and_probes_stay() -> None:
    found = render(ALL_ON)
    plain = render({"monitoring": {"podMonitor": {"create": "always"}}})
    assert endpoint_of(plain) == {"port": "http", "path": "/metrics", "interval": "30s", "honorLabels": True}
    assert endpoint_of(found) == {
        **endpoint_of(plain),
        "port": "https-metrics",
        "scheme": "https",
        "tlsConfig": {
            "ca": {"secret": {"name": "operator-metrics", "key": "ca.crt"}},
            "serverName": "streamapp-operator.streamapp-system.svc",
        },
    }
    (operator,) = found.one("Deployment")["spec"]["template"]["spec"]["containers"]
    (other,) = plain.one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert operator["ports"] == [*other["ports"], {"name": "https-metrics", "containerPort": 8443}]
    assert [operator[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")] == [
        other[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")
    ]
    settings = Settings.from_environment(environment_of(found))
    assert settings.metrics_tls_folder == mounts_of(found)["metrics-tls"]["mountPath"]
    assert settings.metrics_port == 8443
    assert Settings.from_environment(environment_of(plain)).metrics_tls_folder == ""
    ports = {one["name"]: one["port"] for one in found.one("Service")["spec"]["ports"]}
    assert ports == {"http": 8080, "https-metrics": 8443}
    (ingress,) = found.one("NetworkPolicy")["spec"]["ingress"]
    assert [one["port"] for one in ingress["ports"]] == ["http", "https-metrics"]


def test_the_name_in_the_certificate_of_metrics_can_be_another() -> None:
    monitoring = {"podMonitor": {"create": "always"}, "tls": {"secretName": "cert", "serverName": "metrics.example"}}
    assert endpoint_of(render({"monitoring": monitoring}))["tlsConfig"]["serverName"] == "metrics.example"


def test_everything_has_the_labels_and_annotations_that_were_asked_for() -> None:
    found = render(ALL_ON).objects
    assert [one["metadata"]["name"] for one in found if one["metadata"]["labels"].get("team") != "data"] == []
    bare = {one["kind"] for one in found if "example.org/owner" not in one["metadata"].get("annotations", {})}
    assert bare == {"CustomResourceDefinition", "Pod"}


def test_own_labels_never_stand_twice_and_never_replace_those_that_select() -> None:
    own = {"app.kubernetes.io/name": "mine", "app.kubernetes.io/part-of": "platform", "team": "data"}
    ran = attempt({"labels": own, "podLabels": own, "podAnnotations": {DEFAULT_CONTAINER: "sidecar"}})
    assert ran.returncode == 0, ran.stderr
    found = [each for each in yaml.load_all(ran.stdout, Loader=OnceLoader) if each]
    (deployment,) = [each for each in found if each["kind"] == "Deployment"]
    template = deployment["spec"]["template"]["metadata"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= template["labels"].items()
    assert (template["labels"]["app.kubernetes.io/part-of"], template["labels"]["team"]) == (
        "streamapp-operator",
        "data",
    )
    assert template["annotations"] == {DEFAULT_CONTAINER: "sidecar"}


class OnceLoader(yaml.SafeLoader):
    """Refuses a key that stands twice, as post-renderers do."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep=deep)


def test_the_pods_run_where_and_as_the_values_say() -> None:
    spec = render(ALL_ON).one("Deployment")["spec"]
    pod = spec["template"]["spec"]
    assert spec["revisionHistoryLimit"] == ALL_ON["revisionHistoryLimit"]
    for field in ("hostAliases", "dnsConfig", "tolerations", "affinity", "priorityClassName", "imagePullSecrets"):
        assert pod[field] == ALL_ON[field]
    assert [one["topologyKey"] for one in pod["topologySpreadConstraints"]] == ["kubernetes.io/hostname", "zone"]
    assert pod["containers"][0]["env"][-1] == ALL_ON["extraEnv"][0]
    assert "/extraEnv/0/name" in refusal({"extraEnv": [{"name": "STREAMAPP_NAMESPACES", "value": "x"}]})


def test_the_flight_record_lies_in_an_empty_dir_with_room_for_more_than_is_ever_written() -> None:
    for record in ({}, {"bytes": 2**33, "closeBytes": 2**26, "closeSeconds": 10, "ageSeconds": 864_000}):
        found = render({"record": record})
        settings = Settings.from_environment(environment_of(found))
        files = settings.record_age_seconds / settings.record_close_seconds
        room = int(volumes_of(found)["record"]["emptyDir"]["sizeLimit"])
        assert room > settings.record_bytes + 2 * settings.record_close_bytes + 8192 * files
        assert room < settings.record_bytes + 3 * settings.record_close_bytes + 8192 * files + 2**24
        assert mounts_of(found)["record"] == {"name": "record", "mountPath": settings.record_folder}
    assert found.one("Deployment")["spec"]["strategy"]["type"] == "RollingUpdate"
    assert "fsGroup" not in found.one("Deployment")["spec"]["template"]["spec"]["securityContext"]


def test_the_flight_record_is_read_as_the_values_say() -> None:
    limits = {"bytes": 2**40, "ageSeconds": 31_536_000, "closeSeconds": 60, "closeBytes": 2**30}
    settings = Settings.from_environment(environment_of(render({"record": limits, "clusterName": "north"})))
    read = (settings.record_bytes, settings.record_age_seconds, settings.record_close_seconds)
    assert (*read, settings.record_close_bytes) == tuple(limits.values())
    assert (settings.cluster_name, settings.record_bootstrap, settings.record_config_folder) == ("north", "", "")
    off = Settings.from_environment(environment_of(render(MINIMAL)))
    assert (off.record_folder, off.record_bootstrap) == ("", "")
    assert set(volumes_of(render(MINIMAL))) == set(mounts_of(render(MINIMAL))) == {"tmp", "agent-key", "insight"}


def test_the_flight_record_goes_to_a_topic_with_the_properties_of_a_secret() -> None:
    found = render(ALL_ON)
    settings = Settings.from_environment(environment_of(found))
    assert (settings.record_bootstrap, settings.record_topic) == ("a:9092,b:9092", "flights")
    mount = {"name": "record-kafka", "mountPath": settings.record_config_folder, "readOnly": True}
    assert mounts_of(found)["record-kafka"] == mount
    assert volumes_of(found)["record-kafka"]["secret"] == {"secretName": "record-client", "optional": True}
    bare = render({"record": {"kafka": {"bootstrapServers": "a:9092"}}})
    assert Settings.from_environment(environment_of(bare)).record_config_folder == ""
    assert "record-kafka" not in set(mounts_of(bare)) | set(volumes_of(bare))


def test_a_claim_that_many_nodes_share_serves_replicas_and_any_other_one_pod_at_a_time() -> None:
    found = render(ALL_ON)
    assert volumes_of(found)["record"]["persistentVolumeClaim"] == {"claimName": "shared"}
    spec = found.one("Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (2, "RollingUpdate")
    security = spec["template"]["spec"]["securityContext"]
    assert security["fsGroup"] == security["runAsUser"]
    alone = render({"replicas": 1, "record": {"volume": {"existingClaim": "disk"}}})
    assert alone.one("Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert "STREAMAPP_LEASE_NAMESPACE" in environment_of(alone)
    by_cluster = render({"runAsUser": None, "record": ALL_ON["record"]})
    assert "fsGroup" not in by_cluster.one("Deployment")["spec"]["template"]["spec"]["securityContext"]


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"volume": {"existingClaim": "disk"}}, "a claim with ReadWriteOnce serves pods on one node only"),
        ({"volume": {"existingClaim": "disk", "accessMode": "ReadWriteOncePod"}}, "a claim with ReadWriteOncePod"),
        ({"enabled": False, "kafka": {"bootstrapServers": "a:9092"}}, "nothing is sent while record.enabled is false"),
        ({"kafka": {"configSecret": "it"}}, "it serves no brokers"),
        ({"bytes": 33_554_431}, "record.bytes: less than twice record.closeBytes"),
        ({"ageSeconds": 300}, "record.ageSeconds: it must be more than record.closeSeconds"),
        ({"volume": {"existingClaim": "disk", "accessMode": "ReadOnlyMany"}}, "/record/volume/accessMode"),
        ({"kafka": {"bootstrapServers": "a"}}, "/record/kafka/bootstrapServers"),
        ({"bytes": "1Gi"}, "/record/bytes"),
        ({"closeSeconds": 86_400}, "/record/closeSeconds"),
        ({"folder": "/x"}, "'folder' not allowed"),
    ],
)
def test_a_flight_record_that_cannot_be_kept_is_refused(record: Json, told: str) -> None:
    assert told in refusal({"record": record})


WRONG: dict[str, tuple[Any, str]] = {
    "unknown": ({"replica": 2}, "'replica' not allowed"),
    "unknown within": ({"images": {"operators": {}}}, "'operators' not allowed"),
    "latest": ({"images": {"operator": {"tag": "latest"}}}, "/images/operator/tag"),
    "tag in the name": ({"images": {"seed": {"repository": "x/y:1"}}}, "/images/seed/repository"),
    "number as text": ({"replicas": "two"}, "/replicas"),
    "mode": ({"monitoring": {"rules": {"create": "yes"}}}, "/monitoring/rules/create"),
    "setting": ({"settings": {"pollIdle": 3}}, "'pollIdle' not allowed"),
    "root": ({"runAsUser": 0}, "/runAsUser"),
    "secret without place": ({"kafkaConfigSecrets": [{"name": "x"}]}, "missing property 'namespace'"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_refused_with_its_place(wrong: tuple[Json, str]) -> None:
    values, told = wrong
    assert told in refusal(values)
