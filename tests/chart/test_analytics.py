"""The pipeline's CronJobs as Helm makes them: what they read, what they may not do, and what is refused."""

import re
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from lab.settings import REPOSITORY
from streamapp.analytics.cli import analytics
from streamapp.cli.adoption.facts import selects
from tests.chart.rendering import ALL_ON, NAMESPACE, Json, Rendered, refusal, render

pytestmark = [pytest.mark.chart, pytest.mark.timeout(300)]

RUN, REPORT = "streamapp-operator-analytics", "streamapp-operator-analytics-report"
TOPIC: Json = {"kafka": {"bootstrapServers": "a:9092"}}
CLAIM: Json = {"volume": {"existingClaim": "shared", "accessMode": "ReadWriteMany"}}
TABLES, RECORD, SECRET = "/var/lib/streamapp/tables", "/var/lib/streamapp/record", "/etc/streamapp/record-kafka"


def values(record: Json, **more: Any) -> Json:
    return {"analytics": {"enabled": True, "tables": {"existingClaim": "tables"}, **more}, "record": record}


def pod(found: Rendered, name: str = RUN) -> Json:
    spec: Json = found.one("CronJob", name)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


def container(found: Rendered, name: str = RUN) -> Json:
    (one,) = pod(found, name)["containers"]
    return dict(one)


def mounts(found: Rendered, name: str = RUN) -> dict[str, tuple[str, bool]]:
    """Where each volume is, and whether it may be read only."""
    listed = container(found, name)["volumeMounts"]
    assert [one["name"] for one in listed] == [volume["name"] for volume in pod(found, name)["volumes"]]
    return {one["name"]: (one["mountPath"], one.get("readOnly", False)) for one in listed}


def volume(found: Rendered, name: str, job: str = RUN) -> Json:
    (one,) = [each for each in pod(found, job)["volumes"] if each["name"] == name]
    return dict(one)


def test_there_is_nothing_of_it_unless_it_is_asked_for() -> None:
    assert [one["metadata"]["name"] for one in render({}).objects if "analytics" in one["metadata"]["name"]] == []
    assert render({}).of("CronJob") == []


def test_a_run_reads_the_topic_with_the_properties_of_the_secret() -> None:
    found = render(ALL_ON)
    told = container(found)["args"]
    assert told[:4] == ["run", "--kafka=a:9092,b:9092", "--topic=flights", f"--kafka-properties={SECRET}"]
    assert told[-1] == "--max-bad=0.05"
    assert mounts(found) == {"tmp": ("/tmp", False), "tables": (TABLES, False), "record-kafka": (SECRET, True)}
    assert volume(found, "record-kafka")["secret"]["secretName"] == "record-client"
    assert mounts(render(values(TOPIC))) == {"tmp": ("/tmp", False), "tables": (TABLES, False)}


def test_a_run_reads_files_of_a_claim_without_the_right_to_write_them() -> None:
    found = render(values(CLAIM))
    assert container(found)["args"][:3] == ["run", RECORD, f"--root={TABLES}"]
    assert mounts(found)["record"] == (RECORD, True)
    assert volume(found, "record")["persistentVolumeClaim"] == {"claimName": "shared"}
    assert volume(found, "tables")["persistentVolumeClaim"] == {"claimName": "tables"}
    assert "affinity" not in pod(found)
    both = values({**CLAIM, **TOPIC})
    assert container(render(both))["args"][1] == RECORD
    assert container(render(values({**CLAIM, **TOPIC}, source="kafka")))["args"][1] == "--kafka=a:9092"


def test_a_claim_of_one_node_puts_a_run_where_the_operator_is() -> None:
    found = render({**values({"volume": {"existingClaim": "disk"}}), "replicas": 1})
    (rule,) = pod(found)["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"] == found.one("Deployment")["spec"]["selector"]
    assert "affinity" not in pod(found, REPORT)


@pytest.mark.parametrize("record", [TOPIC, CLAIM], ids=["topic", "claim"])
def test_what_a_run_is_started_with_is_what_the_command_takes(record: Json) -> None:
    told = container(render(values(record, args=["--debug"])))["args"]
    command = analytics.commands["run"]
    options = {name for parameter in command.params for name in parameter.opts}
    assert {one.partition("=")[0] for one in told[1:] if one.startswith("--")} <= options
    # Every value is of its option's kind: it stops at the record that is not here, or at no connector for Spark.
    ran = CliRunner().invoke(analytics, told)
    assert ran.exit_code == 1, ran.output


def test_one_run_at_a_time_and_none_for_ever() -> None:
    spec = render(values(TOPIC, activeDeadlineSeconds=600)).one("CronJob", RUN)["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"], spec["timeZone"]) == ("Forbid", False, "Etc/UTC")
    assert (spec["jobTemplate"]["spec"]["activeDeadlineSeconds"], spec["jobTemplate"]["spec"]["backoffLimit"]) == (
        600,
        1,
    )
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def bound_to_the_job(found: Rendered) -> list[str]:
    """The names of all roles that are bound to the job's account."""
    return [
        one["roleRef"]["name"]
        for kind in ("RoleBinding", "ClusterRoleBinding")
        for one in found.of(kind)
        if any(subject["name"] == RUN for subject in one["subjects"])
    ]


@pytest.mark.parametrize("job", [RUN, REPORT])
def test_its_pods_say_why_they_failed_and_only_one_that_writes_insight_has_a_token(job: str) -> None:
    for write in (True, False):
        found = render({**ALL_ON, "insight": {"write": write}})
        spec = pod(found, job)
        assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == (RUN, write and job == RUN)
        assert found.one("ServiceAccount", RUN)["automountServiceAccountToken"] is False
        assert container(found, job)["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_the_job_can_read_and_patch_the_one_config_map_and_nothing_else() -> None:
    found = render(values(TOPIC))
    assert bound_to_the_job(found) == [RUN]
    assert found.one("Role", RUN)["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["streamapp-insight"],
            "verbs": ["get", "patch"],
        }
    ]
    assert "data" not in found.one("ConfigMap", "streamapp-insight")
    (mounted,) = [one for one in next(found.pods())["volumes"] if one["name"] == "insight"]
    assert mounted["configMap"] == {"name": "streamapp-insight", "optional": True}
    assert f"--insight-config-map={NAMESPACE}/streamapp-insight" in container(found)["args"]
    assert "--insight-cluster=north" in container(render(ALL_ON))["args"]


def test_a_config_map_whose_name_yaml_takes_for_a_number_is_named_by_a_text() -> None:
    found = render({**values(TOPIC), "insight": {"configMap": "2026"}})
    assert "2026" in {one["metadata"]["name"] for one in found.of("ConfigMap")}
    named = [rule["resourceNames"] for role in found.of("Role") for rule in role["rules"] if "resourceNames" in rule]
    assert named.count(["2026"]) == 2


@pytest.mark.parametrize("off", [{"write": False}, {"configMap": ""}], ids=["write", "name"])
def test_without_insight_to_write_the_job_has_no_right_and_the_chart_makes_no_config_map(off: Json) -> None:
    found = render({**values(TOPIC), "insight": off})
    assert bound_to_the_job(found) == []
    assert [one["metadata"]["name"] for one in found.of("ConfigMap")] == []
    assert [one for one in container(found)["args"] if one.startswith("--insight")] == []
    assert pod(found)["automountServiceAccountToken"] is False
    assert render({"insight": {}}).of("ConfigMap") == []


def test_roles_that_the_installer_makes_are_not_made() -> None:
    found = render({**values(TOPIC), "rbac": {"create": False}})
    assert [one for one in found.of("Role") if one["metadata"]["name"] == RUN] == []
    assert found.one("ConfigMap", "streamapp-insight")


def test_nothing_that_selects_the_operators_pods_selects_those_of_a_run() -> None:
    found = render(ALL_ON)
    labels, own = (
        spec["template"]["metadata"]["labels"]
        for spec in (found.one("CronJob", RUN)["spec"]["jobTemplate"]["spec"], found.one("Deployment")["spec"])
    )
    selectors = [
        found.one("Deployment")["spec"]["selector"],
        {"matchLabels": found.one("Service")["spec"]["selector"]},
        found.one("PodDisruptionBudget")["spec"]["selector"],
        found.one("NetworkPolicy")["spec"]["podSelector"],
    ]
    assert [one for one in selectors if selects(one, labels) or not selects(one, own)] == []
    run = found.one("NetworkPolicy", RUN)["spec"]["podSelector"]
    assert (selects(run, labels), selects(run, own)) == (True, False)


def test_the_network_that_a_run_may_use_is_the_brokers_and_the_api_server_and_of_files_alone_none() -> None:
    spec = render(ALL_ON).one("NetworkPolicy", RUN)["spec"]
    assert spec["ingress"] == []
    assert [[port["port"] for port in rule["ports"]] for rule in spec["egress"]] == [[53, 53], [9092], [6443]]
    assert [rule["to"] for rule in spec["egress"][1:]] == [
        ALL_ON["networkPolicy"][peer]["to"] for peer in ("brokers", "apiServer")
    ]
    on = {**values(CLAIM), "networkPolicy": {"enabled": True}}
    writing = render(on).one("NetworkPolicy", RUN)["spec"]
    assert [[port["port"] for port in rule["ports"]] for rule in writing["egress"]] == [[53, 53], [443, 6443]]
    alone = render({**on, "insight": {"write": False}}).one("NetworkPolicy", RUN)["spec"]
    assert (alone["ingress"], alone["egress"], alone["policyTypes"]) == ([], [], ["Ingress", "Egress"])


def test_another_user_gets_a_name_and_the_images_own_needs_none() -> None:
    found = render({**values(TOPIC), "runAsUser": 20000})
    lines = found.one("ConfigMap", RUN)["data"]["passwd"].splitlines()
    assert [line.split(":")[2] for line in lines] == ["0", "20000"]
    assert mounts(found)["passwd"] == ("/etc/passwd", True)
    assert pod(found)["securityContext"]["fsGroup"] == 20000
    for user in (10003, None):
        same = render({**values(TOPIC), "runAsUser": user})
        assert [one["metadata"]["name"] for one in same.of("ConfigMap")] == ["streamapp-insight"]
        assert "passwd" not in mounts(same)
    image = (REPOSITORY / "operator" / "images" / "analytics" / "Dockerfile").read_text()
    assert "streamapp:x:10003:10003:" in image
    assert "USER 10003:10003" in image


def test_names_keep_to_what_a_cronjob_may_have() -> None:
    found = render({**values(TOPIC), "fullnameOverride": "n" * 52})
    names = [one["metadata"]["name"] for one in found.of("CronJob")]
    assert len(set(names)) == 2
    assert max(map(len, names)) <= 52


def test_the_report_is_fetched_without_the_right_to_write_it() -> None:
    found = render(values(CLAIM))
    assert mounts(found, REPORT) == {"tmp": ("/tmp", False), "tables": (TABLES, True)}
    environment = {one["name"]: one["value"] for one in container(found, REPORT)["env"]}
    assert environment == {"REPORT": f"{TABLES}/report.html", "CRONJOB": RUN, "NAMESPACE": NAMESPACE}
    assert found.one("CronJob", REPORT)["spec"]["suspend"] is True


def test_an_alert_names_the_job_that_there_is() -> None:
    (rule,) = render(ALL_ON).of("PrometheusRule")
    (alert,) = [one for group in rule["spec"]["groups"] for one in group["rules"] if "Analytics" in one["alert"]]
    assert set(re.findall(r'(?:namespace|cronjob)="([^"]+)"', alert["expr"])) == {NAMESPACE, RUN}
    assert "> 180000 and" in alert["expr"]
    assert "RUNBOOK" not in yaml.safe_dump(alert)
    off = {**ALL_ON, "analytics": {"enabled": False}}
    (rule,) = render(off).of("PrometheusRule")
    assert "Analytics" not in yaml.safe_dump(rule)


REFUSED: dict[str, tuple[Json, str]] = {
    "no record": (values({"enabled": False}), "there is no flight record to read while record.enabled is false"),
    "no tables": (values(TOPIC, tables={"existingClaim": ""}), "tables and report need a volume that outlives a run"),
    "emptyDir": (values({}), "the flight record lies in an emptyDir of each of the operator's pods"),
    "no files": (values(TOPIC, source="files"), "there are no files that another pod can read"),
    "no topic": (values(CLAIM, source="kafka"), "the record is sent to no topic"),
    "one pod's claim": (
        {**values({"volume": {"existingClaim": "disk", "accessMode": "ReadWriteOncePod"}}), "replicas": 1},
        "a claim with ReadWriteOncePod is the operator's pod's alone",
    ),
    "one claim for both": (values(CLAIM, tables={"existingClaim": "shared"}), "it is the claim of the record"),
    "heap": (values(TOPIC, memory="3g"), "a limit of 3Gi has no room for a heap of 3g (analytics.memory)"),
    "small pod": (
        values(TOPIC, memory="1200m", resources={"limits": {"memory": "2000Mi"}}),
        "a limit of 2000Mi has no room for a heap of 1200m",
    ),
    "schedule": (values(TOPIC, schedule="daily"), "/analytics/schedule"),
    "memory": (values(TOPIC, memory="2Gi"), "/analytics/memory"),
    "no name": ({**values(TOPIC), "insight": {"configMap": "a/b"}}, "/insight/configMap"),
    "a taken name": (
        {**values(TOPIC), "insight": {"configMap": "streamapp-operator-analytics"}},
        "the chart has another ConfigMap of that name",
    ),
    "unknown": (values(TOPIC, keep=3), "'keep' not allowed"),
}


@pytest.mark.parametrize(
    "more",
    [
        {"memory": "8g", "resources": {"limits": {"memory": "9Gi"}}},
        {"memory": "8g", "resources": {"limits": {"memory": None}}},
        {"memory": "8g", "resources": {"limits": {"memory": "9.5G"}}},
    ],
)
def test_a_heap_with_room_beside_it_or_without_a_known_limit_is_taken(more: Json) -> None:
    assert "--memory=8g" in container(render(values(TOPIC, **more)))["args"]


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_what_cannot_work_is_refused_with_the_next_step(refused: tuple[Json, str]) -> None:
    given, told = refused
    assert told in refusal(given)
