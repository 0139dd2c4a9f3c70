"""`kubectl streamapp doctor` against an API server with an operator behind its pod proxy, and without one."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from streamapp.api.http.messages import OperatorTold, findings_path
from streamapp.core.doctor.diagnoses import Diagnosis
from tests.builders import a_record, a_snapshot, an_unreadable
from tests.cli.cluster import NO_DEFINITION, Cluster
from tests.cli.conftest import Run
from tests.cli.operator_there import HERE, SYSTEM, OperatorThere, a_pod
from tests.cli.showing import a_resource
from tests.core.doctor.subjects import a_patient, members, with_agents
from tests.core.doctor.test_diagnoses import STORIES
from tests.statuses import answer

SETTLED = answer(a_snapshot(desired=3, record=None))
SOUND = {"type": "AutoscalingHealthy", "status": "True", "reason": "Sound", "message": "", "observedGeneration": 1}
PROBE = {"spec.template.spec.containers.0.readinessProbe": {"httpGet": {"path": "/healthz", "port": 1}}}
GRACE = {"spec.template.spec.terminationGracePeriodSeconds": 60}
Json = dict[str, Any]


def sound(written: Json = SETTLED, **condition: str) -> Json:
    """A status in which what HorizontalPodAutoscalers come to is as said."""
    time = written["conditions"][0]["lastTransitionTime"]
    others = [one for one in written["conditions"] if one["type"] != SOUND["type"]]
    return {**written, "conditions": [*others, {**SOUND, "lastTransitionTime": time, **condition}]}


def well(**changes: Any) -> Json:
    return a_resource(sound(), {**PROBE, **GRACE, **changes})


@pytest.fixture
def there(cluster: Cluster) -> OperatorThere:
    """Two pods, a Lease, policies, every right, and one StreamApp with agents that is well."""
    operator = OperatorThere(cluster)
    operator.install(lease="operator-a_x7k2")
    operator.policies()
    operator.serve()
    cluster.put(well())
    return operator


def found(run: Run, *arguments: str, kind: str = "Found") -> dict[str, str]:
    """The particulars by code, of the cluster and of all StreamApps."""
    document = run("doctor", *arguments, "-o", "json").document
    parts = [document["cluster"], *document["apps"]]
    return {one["code"]: one.get("detail", "") for part in parts for one in part["findings"] if one["kind"] == kind}


def test_where_all_is_well_nothing_is_found_and_everything_was_checked(there: OperatorThere, run: Run) -> None:
    ran = run("doctor", "--exit-code")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert [line.split(None, 1) for line in lines[:5]] == [
        ["cluster", f"{there.cluster.url} (context here)"],
        ["definition", "StreamApp v1alpha1"],
        ["operator", f"namespace {SYSTEM}, 2 of 2 pods ready"],
        ["leader", "operator-a, by its Lease"],
        ["version", f"operator {HERE}, image op:1; command line {HERE}"],
    ]
    assert "demo/wordcount  settled" in lines
    assert lines[-1].startswith("no problems; ")
    assert "not checked" not in lines[-1]
    assert "cannot be seen" not in lines[-1]
    assert found(run) == found(run, kind="Unchecked") == found(run, kind="Unseen") == {}


def install_nothing(there: OperatorThere) -> None:
    for name in ("operator-a", "operator-b"):
        there.remove("pods", SYSTEM, name)
    there.remove("leases", SYSTEM, "streamapp-operator")


def make_unready(*names: str) -> Callable[[OperatorThere], None]:
    def act(there: OperatorThere) -> None:
        for name in names:
            there.put("pods", a_pod(name, ready=False))

    return act


def scale_by_cpu(there: OperatorThere, metrics: int = 200, kind: str = "StreamApp") -> None:
    there.metrics = metrics
    spec = {"scaleTargetRef": {"kind": kind, "name": "wordcount"}}
    body = {"metadata": {"namespace": "demo", "name": "by-cpu"}, "spec": spec}
    there.put("horizontalpodautoscalers", body)


def leave_the_lease(there: OperatorThere) -> None:
    there.install(lease="")


def tell_another_release(there: OperatorThere) -> None:
    there.tell("/v1/operator", OperatorTold(release="0.0.1", instance="operator-a", leads=True, agent_key=True))


def take_policies_away(there: OperatorThere) -> None:
    there.remove("validatingadmissionpolicies", "", "streamapp-scaling")


def scale_by_keda(there: OperatorThere, type: str = "apache-kafka", **metadata: str) -> None:  # noqa: A002 (KEDA's word)
    there.cluster.put(a_resource({**sound(), "groupProtocol": "streams"}, {**PROBE, **GRACE}))
    trigger = {"type": type, "metadata": {"consumerGroup": "counter", **metadata}}
    target = {"apiVersion": "streamapp.dev/v1alpha1", "kind": "StreamApp", "name": "wordcount"}
    body = {
        "metadata": {"namespace": "demo", "name": "by-lag"},
        "spec": {"scaleTargetRef": target, "triggers": [{"type": "cron", "metadata": {}}, trigger]},
    }
    there.put("scaledobjects", body)
    there.has_keda = True


def say(**condition: str) -> Callable[[OperatorThere], None]:
    return lambda there: there.cluster.put(a_resource(sound(SETTLED, **condition), {**PROBE, **GRACE}))


def put(resource: Json) -> Callable[[OperatorThere], None]:
    return lambda there: there.cluster.put(resource)


STALLED = answer(a_snapshot(record=a_record(gave_up_at=1)))
CAUSES: dict[Diagnosis, tuple[Callable[[OperatorThere], None], str]] = {
    Diagnosis.DefinitionMissing: (
        lambda there: setattr(there, "versions", ("v1",)),
        "v1alpha1 is required; it serves v1",
    ),
    Diagnosis.OperatorMissing: (
        install_nothing,
        f"no pod in namespace {SYSTEM} has the label app.kubernetes.io/name=streamapp-operator",
    ),
    Diagnosis.OperatorNotReady: (
        make_unready("operator-a", "operator-b"),
        f"pod operator-a, operator-b in namespace {SYSTEM}",
    ),
    Diagnosis.OperatorNotRedundant: (make_unready("operator-b"), f"1 pod of 2 in namespace {SYSTEM} is ready"),
    Diagnosis.OperatorLeaderless: (
        leave_the_lease,
        f"operator in namespace {SYSTEM}: 2 pods run and none holds the Lease streamapp-operator "
        "(try again in a few seconds; if this persists, read the logs of the pods)",
    ),
    Diagnosis.OperatorUnreachable: (
        lambda there: setattr(there, "leader", "nobody"),
        f"operator pod {SYSTEM}/operator-a: 503: this replica of the operator does not lead (try again in a few "
        "seconds; if this persists, check the pod and its kubelet; an operator that is older than the command line can "
        "serve another port: upgrade the operator)",
    ),
    Diagnosis.VersionsDiffer: (tell_another_release, f"the operator is 0.0.1, the command line is {HERE}"),
    Diagnosis.OperatorRightMissing: (
        lambda there: there.denied.update({("pods", "delete"), ("streamapps/status", "patch")}),
        f"service account {SYSTEM}/streamapp-operator: patch streamapps/status.streamapp.dev; delete pods",
    ),
    Diagnosis.AdmissionPoliciesAbsent: (
        take_policies_away,
        "no policy has the label app.kubernetes.io/name=streamapp-operator",
    ),
    Diagnosis.MetricsApiAbsent: (
        lambda there: scale_by_cpu(there, 503),
        "503: no endpoints; 1 autoscalers of StreamApps can need it",
    ),
    Diagnosis.Stalled: (put(a_resource(sound(STALLED), {**PROBE, **GRACE})), ""),
    Diagnosis.Unanswered: (
        put(a_resource(sound(), {**PROBE, **GRACE}, generation=2)),
        "The status is older than the spec: the status is for generation 1, and the spec has generation 2.",
    ),
    Diagnosis.ScalingUnsound: (
        say(status="False", reason="TwoWriters", message="an HPA and a person"),
        "TwoWriters: an HPA and a person",
    ),
    Diagnosis.ScalerSeesNoGroup: (scale_by_keda, "ScaledObject by-lag, trigger 2"),
    Diagnosis.FactsOld: (lambda there: there.tell_of(with_agents(), age=16 * 60), "16 minutes ago"),
    Diagnosis.NoCopies: (
        lambda there: there.tell_of(a_patient(members(standbys=False))),
        "6 stateful tasks, no standby of any",
    ),
}


@pytest.mark.parametrize("diagnosis", CAUSES, ids=lambda one: one.name)
def test_it_is_found_where_its_cause_is_there(there: OperatorThere, run: Run, diagnosis: Diagnosis) -> None:
    cause, detail = CAUSES[diagnosis]
    assert diagnosis.name not in found(run)
    cause(there)
    told = found(run)
    assert diagnosis.name in told
    assert detail in told[diagnosis.name]


def test_every_diagnosis_has_a_story_here_or_in_the_core() -> None:
    assert {*CAUSES, *STORIES} == set(Diagnosis)


def test_the_exit_code_is_that_of_the_worst_and_only_where_it_is_asked_for(there: OperatorThere, run: Run) -> None:
    make_unready("operator-b")(there)
    assert run("doctor", "--exit-code").code == 0
    tell_another_release(there)
    assert run("doctor", "--exit-code").code == 3
    there.denied.add(("pods", "delete"))
    assert run("doctor", "--exit-code").code == 4
    assert run("doctor").code == 0


def test_what_could_not_be_checked_is_no_good_news(there: OperatorThere, run: Run) -> None:
    there.may_review = False
    assert run("doctor", "--exit-code").code == 3
    (why,) = found(run, kind="Unchecked").values()
    assert why.startswith("create subjectaccessreviews.authorization.k8s.io: ")
    assert "OperatorRightMissing could not be checked: create subject" in run("doctor").out


@pytest.mark.parametrize(
    ("path", "codes"),
    [
        (f"namespaces/{SYSTEM}/pods", {"OperatorMissing", "OperatorNotReady", "OperatorRightMissing"}),
        ("validatingadmissionpolicies", {"AdmissionPoliciesAbsent"}),
        ("horizontalpodautoscalers", {"MetricsApiAbsent"}),
    ],
)
def test_a_right_that_the_caller_lacks_leaves_out_what_needs_it_and_nothing_else(
    there: OperatorThere, run: Run, path: str, codes: set[str]
) -> None:
    there.cluster.refuse(403, "not for you", path=path)
    assert codes <= set(found(run, kind="Unchecked"))
    assert not codes & set(found(run))
    assert run("doctor").code == 0


def test_autoscalers_of_others_ask_for_no_metrics(there: OperatorThere, run: Run) -> None:
    scale_by_cpu(there, 503, kind="Deployment")
    assert "MetricsApiAbsent" not in found(run)


@pytest.mark.parametrize("how", [{"topic": "words"}, {"type": "kafka"}])
def test_a_trigger_that_needs_no_members_is_in_order(there: OperatorThere, run: Run, how: Json) -> None:
    scale_by_keda(there, **how)
    (app,) = run("doctor", "-o", "json").document["apps"]
    assert "ScalerSeesNoGroup" in app["fine"]


def test_scaled_objects_that_cannot_be_listed_are_not_checked(there: OperatorThere, run: Run) -> None:
    scale_by_keda(there)
    there.cluster.refuse(403, "not for you", path="scaledobjects")
    assert "not for you" in found(run, kind="Unchecked")["ScalerSeesNoGroup"]


def test_without_keda_there_are_no_scaled_objects_also_for_a_user_without_the_right(
    there: OperatorThere, run: Run
) -> None:
    """Rights are looked at first, so an API that is not there is refused, too."""
    there.cluster.put(a_resource({**sound(), "groupProtocol": "streams"}, {**PROBE, **GRACE}))
    there.cluster.refuse(403, "not for you", path="scaledobjects")
    assert "ScalerSeesNoGroup" not in found(run, kind="Unchecked")


def test_rights_are_asked_for_the_operators_account_in_the_namespaces_that_it_watches(
    there: OperatorThere, run: Run
) -> None:
    told = OperatorTold(release=HERE, instance="a", leads=True, agent_key=True, namespaces=("demo", "prod"))
    there.tell("/v1/operator", told)
    found(run)
    assert {one["user"] for one in there.reviewed} == {f"system:serviceaccount:{SYSTEM}:streamapp-operator"}
    assert f"system:serviceaccounts:{SYSTEM}" in there.reviewed[0]["groups"]
    places = {
        (one["resourceAttributes"]["resource"], one["resourceAttributes"].get("namespace")) for one in there.reviewed
    }
    assert {("pods", "demo"), ("pods", "prod"), ("leases", SYSTEM)} <= places
    assert ("horizontalpodautoscalers", "demo") not in places


def test_the_lease_is_the_one_that_the_operators_pods_stand_for(there: OperatorThere, run: Run) -> None:
    there.rename_lease("mine-streamapp-operator")
    before = len(there.reviewed)
    ran = run("doctor", "-o", "json")
    assert ran.document["cluster"]["facts"]["leader"] == "operator-a, by its Lease"
    asked = [one["resourceAttributes"] for one in there.reviewed[before:]]
    leases = {one.get("name", "") for one in asked if one["resource"] == "leases" and one["verb"] != "create"}
    assert leases == {"mine-streamapp-operator"}


def test_without_a_definition_the_rest_is_still_told(there: OperatorThere, run: Run) -> None:
    there.versions = ()
    there.cluster.refuse(*NO_DEFINITION, path="streamapps")
    ran = run("doctor")
    assert ran.code == 0
    assert "DefinitionMissing" in ran.out
    assert "2 of 2 pods ready" in ran.out


def without_operator(there: OperatorThere, status: Json, **changes: Any) -> None:
    install_nothing(there)
    there.cluster.put(a_resource(sound(status), {**PROBE, **GRACE, **changes}))


def test_without_an_operator_the_report_has_the_conditions_of_the_last_status(there: OperatorThere, run: Run) -> None:
    status = answer(a_snapshot(desired=3, record=None, readings=(an_unreadable(),)))
    without_operator(there, status)
    document = run("doctor", "-o", "json").document
    (app,) = document["apps"]
    assert (app["findings"], app["facts"]["statusFrom"]) == ([], "just now")
    conditions = {one["type"]: (one["status"], one["reason"]) for one in app["lastConditions"]}
    assert conditions["KafkaReachable"] == ("False", "BrokersUnreachable")
    assert "OperatorMissing" in found(run)
    text = run("doctor").out
    assert "The operator did not answer. Conditions of the last status, from just now:" in text
    assert "BrokersUnreachable: " in text


def test_a_streamapp_that_is_well_has_one_condition_left_without_an_operator(there: OperatorThere, run: Run) -> None:
    without_operator(there, SETTLED)
    (app,) = run("doctor", "-o", "json").document["apps"]
    assert [one["type"] for one in app["lastConditions"]] == ["Converged"]
    assert set(app["fine"]) == {"Unanswered", "Stalled", "ScalingUnsound"}


def test_one_streamapp_that_the_operator_does_not_know_leaves_the_others_alone(there: OperatorThere, run: Run) -> None:
    there.cluster.put(a_resource(sound(), {**PROBE, **GRACE}, name="other"))
    document = run("doctor", "-o", "json").document
    by_name = {part["streamApp"]: {one["code"] for one in part["findings"]} for part in document["apps"]}
    assert by_name["demo/wordcount"] == set()
    assert "OperatorUnreachable" in by_name["demo/other"]


def test_name_namespace_and_all_namespaces_choose(there: OperatorThere, run: Run) -> None:
    there.cluster.put(well(**{"metadata.namespace": "prod"}))
    there.answers[findings_path("prod", "wordcount")] = there.answers[findings_path("demo", "wordcount")]
    names = [part["streamApp"] for part in run("doctor", "-A", "-o", "json").document["apps"]]
    assert names == ["demo/wordcount", "prod/wordcount"]
    assert [part["streamApp"] for part in run("doctor", "wordcount", "-o", "json").document["apps"]] == [
        "demo/wordcount"
    ]
    assert run("doctor", "nobody").code == 1
    assert run("doctor", "-A", "wordcount").code == 2


def test_yaml_is_the_same_document(there: OperatorThere, run: Run) -> None:
    there.denied.add(("pods", "delete"))
    document = run("doctor", "-o", "json").document
    assert yaml.safe_load(run("doctor", "-o", "yaml").out) == document
    assert document["counts"]["errors"] == 1
    (one,) = document["cluster"]["findings"]
    assert (one["severity"], one["kind"], one["source"]) == ("error", "Found", "Kubernetes")
    assert one["fix"] == Diagnosis.OperatorRightMissing.fix


def test_the_worst_comes_first_with_its_fix(there: OperatorThere, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    tell_another_release(there)
    there.denied.add(("pods", "delete"))
    monkeypatch.setenv("COLUMNS", "80")
    out = run("doctor").out
    assert out.index("OperatorRightMissing") < out.index("VersionsDiffer")
    assert "fix: Install the same version of both." in out
    assert max(map(len, out.splitlines())) <= 80
    assert out.splitlines()[-1].startswith("1 error, 1 warning; ")


def test_text_of_others_steers_no_terminal(there: OperatorThere, run: Run) -> None:
    there.tell_of(a_patient(app={"fault": "spec.\x1b[2J is wrong"}))
    assert "\x1b" not in run("doctor").out
