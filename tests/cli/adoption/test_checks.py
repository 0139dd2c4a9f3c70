"""What stands in the way of an adoption, check by check, in objects alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from streamapp.cli.adoption.checks import findings
from streamapp.cli.adoption.facts import Facts, selects
from streamapp.cli.adoption.findings import Check, Finding
from streamapp.cli.adoption.hints import APPLICATION_ID, STATE_DIR, brokers, hint
from streamapp.cli.adoption.manifest import Choices, draft_of
from streamapp.cli.errors import Unread
from streamapp.core.doctor.diagnoses import Severity
from tests.cli.adopting import LABELS, NAME, a_pod, a_statefulset
from tests.cli.cluster import NAMESPACE

Json = dict[str, Any]
UID = "uid-of-it"
OWNER = {"kind": "StatefulSet", "name": NAME, "uid": UID, "controller": True}


def a_world(change: Callable[[Json], None] = lambda _: None, **more: Any) -> Facts:
    """All that is around a StatefulSet that can be adopted, but for one change."""
    body = a_statefulset()
    body["metadata"]["uid"] = UID
    body["status"] = {"updateRevision": "newest"}
    change(body)
    pods = [a_pod(ordinal, "newest") for ordinal in range(body["spec"]["replicas"])]
    for pod in pods:
        pod["metadata"] |= {"ownerReferences": [OWNER], "uid": pod["metadata"]["name"]}
    claims = tuple({"metadata": {"name": f"datadir-{pod['metadata']['name']}"}} for pod in pods)
    facts = Facts(
        namespace=NAMESPACE,
        name=NAME,
        statefulset=body,
        streamapp=None,
        pods=tuple(pods),
        claims=claims,
        service=None,
        budgets=(),
        autoscalers=(),
        scaled_objects=(),
        vertical_autoscalers=(),
    )
    return replace(facts, **more)


def errors(facts: Facts, choices: Choices | None = None) -> set[str]:
    found: tuple[Finding, ...] = findings(facts, choices or Choices())
    return {one.check.name for one in found if one.check.severity is Severity.ERROR}


def _spec(**changes: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        body["spec"].update(changes)

    return change


def _claim(**changes: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        body["spec"]["volumeClaimTemplates"][0]["spec"].update(changes)

    return change


def _container(**changes: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        container = {**body["spec"]["template"]["spec"]["containers"][0], **changes}
        body["spec"]["template"]["spec"]["containers"] = [container]

    return change


def _twice(body: Json) -> None:
    body["spec"]["volumeClaimTemplates"] *= 2


def _metadata(**changes: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        body["metadata"].update(changes)

    return change


PROTOCOL = [{"name": "STREAMS_SECURITY_PROTOCOL", "value": "SASL_SSL"}]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_spec(replicas=0), "NoPods"),
        (_spec(ordinals={"start": 1}), "OrdinalsShifted"),
        (_twice, "SeveralClaims"),
        (_claim(accessModes=["ReadWriteMany"]), "ClaimUnsupported"),
        (_claim(dataSource={"name": "snapshot"}), "ClaimUnsupported"),
        (_container(volumeMounts=[]), "ClaimNotMounted"),
        (_container(volumeMounts=[{"name": "datadir", "mountPath": "/state", "subPath": "a"}]), "ClaimNotMounted"),
        (_container(env=[]), "ApplicationIdUnknown"),
        (_container(env=[]), "BrokersUnknown"),
        (_container(env=PROTOCOL), "CredentialsUnknown"),
        (_spec(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"}), "ClaimsOwned"),
        (
            _metadata(ownerReferences=[{"kind": "Other", "name": "o", "uid": "1", "controller": True}]),
            "OwnerIsController",
        ),
        (_metadata(annotations={"meta.helm.sh/release-name": "counter"}), "ManagedElsewhere"),
        (_metadata(labels={"argocd.argoproj.io/instance": "counter"}), "ManagedElsewhere"),
    ],
)
def test_what_stands_in_the_way_is_named(change: Callable[[Json], None], code: str) -> None:
    assert code in errors(a_world(change))


def test_nothing_stands_in_the_way_of_a_sound_one() -> None:
    found = findings(a_world(), Choices())
    names = ["UpdateStrategyChanges", "PodManagementChanges", "FieldsDropped", "RestartsLater"]
    assert [one.check.name for one in found] == names


def test_what_the_new_statefulset_will_not_have_is_named() -> None:
    def change(body: Json) -> None:
        body["metadata"] |= {
            "annotations": {"owner": "words", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
        }
        body["spec"] |= {"minReadySeconds": 5, "revisionHistoryLimit": 10}
        body["spec"]["volumeClaimTemplates"][0]["metadata"]["labels"] = {"team": "words"}

    (dropped,) = [one for one in findings(a_world(change), Choices()) if one.check is Check.FieldsDropped]
    expected = "minReadySeconds: 5, label app.kubernetes.io/name, annotation owner, label team of new claims"
    assert dropped.detail == expected


def test_claims_that_have_an_owner_still_hold_it() -> None:
    owned = ({"metadata": {"name": "datadir-counter-0", "ownerReferences": [OWNER]}},)
    facts = a_world()
    assert errors(replace(facts, claims=(*owned, *facts.claims[1:]))) == {"ClaimsOwned"}


SERVICE = {"metadata": {"name": NAME}, "spec": {"clusterIP": "10.0.0.1", "selector": LABELS}}
AIM = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME}
HPA = {"metadata": {"name": "words"}, "spec": {"scaleTargetRef": AIM, "maxReplicas": 9}}
SCALED = {"metadata": {"name": "lag"}, "spec": {"scaleTargetRef": {"kind": "StatefulSet", "name": NAME}}}
OF_KEDA = {"name": "keda-lag", "ownerReferences": [{"kind": "ScaledObject", "name": "lag", "uid": "1"}]}
VPA = {"metadata": {"name": "size"}, "spec": {"targetRef": AIM}}
BUDGET = {"metadata": {"name": "all"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}}
OTHERS = {"metadata": {"name": "others"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
TO_STREAMAPP = '"scaleTargetRef":{"apiVersion":"streamapp.dev/v1alpha1","kind":"StreamApp","name":"counter"}'


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ({"service": SERVICE}, {"ServiceInTheWay"}),
        ({"service": {**SERVICE, "spec": {"clusterIP": "None"}}}, set[str]()),
        ({"autoscalers": (HPA,)}, {"AutoscalerAims"}),
        ({"autoscalers": Unread("forbidden")}, {"AutoscalersUnread"}),
        ({"scaled_objects": (SCALED,)}, {"AutoscalerAims"}),
        ({"scaled_objects": Unread("forbidden")}, {"AutoscalersUnread"}),
        ({"vertical_autoscalers": (VPA,)}, {"VerticalAutoscalerEvicts"}),
        ({"vertical_autoscalers": Unread("forbidden")}, {"AutoscalersUnread"}),
        ({"budgets": (BUDGET,)}, {"BudgetInTheWay"}),
        ({"budgets": (OTHERS,)}, set[str]()),
        ({"budgets": ({**OTHERS, "spec": {"selector": {}}},)}, {"BudgetInTheWay"}),
        ({"budgets": ({**OTHERS, "spec": {}},)}, set[str]()),
        ({"budgets": ({**OTHERS, "metadata": {"name": NAME}},)}, {"BudgetInTheWay"}),
        ({"missing_rights": ("patch pods",)}, {"RightMissing"}),
    ],
)
def test_what_stands_around_it_is_named(around: Json, expected: set[str]) -> None:
    assert errors(a_world(**around)) == expected


def test_an_autoscaler_of_keda_is_named_once_and_with_the_command() -> None:
    found = findings(a_world(scaled_objects=(SCALED,), autoscalers=({**HPA, "metadata": OF_KEDA},)), Choices())
    (aimed,) = [one for one in found if one.check is Check.AutoscalerAims]
    assert f"kubectl patch scaledobject lag -n demo --type=merge -p '{{\"spec\":{{{TO_STREAMAPP}}}}}'" in aimed.fix


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"status": {}}, {"PodsUnwell"}),
        ({"metadata": {"deletionTimestamp": "now"}}, {"PodsUnwell"}),
        ({"metadata": {"ownerReferences": []}}, {"PodsUnwell"}),
        ({"metadata": {"labels": {"controller-revision-hash": "older"}}}, {"RolloutUnfinished"}),
        ({"spec": {"volumes": []}}, {"VolumesDiffer"}),
    ],
)
def test_a_pod_that_is_not_well_holds_it(change: Json, expected: set[str]) -> None:
    facts = a_world()
    first = {key: {**value, **change.get(key, {})} for key, value in facts.pods[0].items()}
    assert (
        errors(replace(facts, pods=(first | {k: v for k, v in change.items() if not v}, *facts.pods[1:]))) == expected
    )


def test_a_pod_that_is_missing_or_beyond_holds_it() -> None:
    facts = a_world()
    assert errors(replace(facts, pods=facts.pods[:2])) == {"PodsUnwell"}
    assert errors(a_world(_spec(replicas=2), pods=facts.pods, claims=facts.claims)) == {"PodsUnwell"}


def test_a_claim_that_is_gone_or_going_holds_it() -> None:
    facts = a_world()
    going = {"metadata": {"name": "datadir-counter-0", "deletionTimestamp": "now"}}
    assert errors(replace(facts, claims=facts.claims[1:])) == {"VolumesDiffer"}
    assert errors(replace(facts, claims=(going, *facts.claims[1:]))) == {"VolumesDiffer"}


def test_pods_with_an_older_template_are_no_obstacle_where_they_wait_for_their_restart_anyway() -> None:
    facts = a_world(_spec(updateStrategy={"type": "OnDelete"}))
    statefulset = {**a_statefulset(), **(facts.statefulset or {}), "status": {"updateRevision": "newer"}}
    found = findings(replace(facts, statefulset=statefulset), Choices())
    assert {one.check.name for one in found if one.check.severity is not Severity.NOTE} == {"OldTemplateInPods"}


def test_another_service_of_the_pods_is_a_warning_that_says_whether_a_container_names_it() -> None:
    named = _container(env=[*a_statefulset()["spec"]["template"]["spec"]["containers"][0]["env"], SERVER])

    def change(body: Json) -> None:
        named(body)
        body["spec"]["serviceName"] = "counter-headless"

    (found,) = [one for one in findings(a_world(change), Choices()) if one.check is Check.ServiceNameDiffers]
    assert found.detail == "Service counter-headless; a container names it"


SERVER = {"name": "APPLICATION_SERVER", "value": "$(POD).counter-headless:80"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"env": [{"name": "APPLICATION_ID", "value": "a"}]}, "a"),
        ({"env": [{"name": "SPRING_KAFKA_STREAMS_APPLICATIONID", "value": "a"}]}, "a"),
        ({"env": [{"name": "KAFKA_APPLICATION_ID", "value": "a"}], "args": ["--application-id", "a"]}, "a"),
        ({"args": ["--application-id=a"]}, "a"),
        ({"command": ["java", "-Dapplication.id=a", "-jar", "x.jar"]}, "a"),
        ({"env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-Xmx1g -Dkafka-streams.application-id=a"}]}, "a"),
        ({"args": ["--application-id", "--verbose"]}, None),
        ({"env": [{"name": "APPLICATION_ID", "value": "a"}], "args": ["--application-id=b"]}, None),
        ({"env": [{"name": "APPLICATION_ID", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}, None),
        ({"env": [{"name": "APPLICATION_ID", "value": "app-$(REGION)"}]}, None),
        ({"env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-Dapplication.id='a"}]}, "'a"),
        ({}, None),
    ],
)
def test_the_application_id_is_known_only_if_all_places_agree_on_plain_text(given: Json, expected: str | None) -> None:
    assert hint(given, APPLICATION_ID).value == expected


def test_brokers_lose_protocols_and_spaces_and_other_settings_are_left_alone() -> None:
    env = [{"name": "KAFKA_BOOTSTRAP_SERVERS", "value": "SASL_SSL://a:9092, b:9093"}]
    assert brokers({"env": env}).value == "a:9092,b:9093"
    assert hint({"env": env}, STATE_DIR).value is None


def test_what_the_user_says_comes_before_the_template() -> None:
    choices = Choices(
        application_id="mine",
        bootstrap_servers="other:9092",
        kafka_config_secrets=("user", "cluster"),
        state_dir="/state/deep",
        container="app",
    )
    spec = draft_of(a_world(), choices)["spec"]
    assert (spec["applicationId"], spec["container"], spec["state"]["stateDir"]) == ("mine", "app", "/state/deep")
    assert spec["kafka"] == {
        "bootstrapServers": "other:9092",
        "configSecretRefs": [{"name": "user"}, {"name": "cluster"}],
    }
    assert errors(a_world(_container(env=PROTOCOL)), choices) == set()


def test_no_claim_at_all_is_a_warning_and_a_streamapp_without_state() -> None:
    facts = a_world(_spec(volumeClaimTemplates=[]))
    assert "state" not in draft_of(facts, Choices())["spec"]
    assert Check.NoVolume in {one.check for one in findings(facts, Choices())}
    assert errors(facts) == set()


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "3"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "ofTheFuture"}]}, True),
    ],
)
def test_a_selector_that_is_not_understood_counts_as_one_that_selects(selector: Json, is_selected: bool) -> None:
    assert selects(selector, {"a": "1"}) == is_selected
