"""The list of the operator's rights against the plain manifest that the lab runs it under."""

from collections import defaultdict

import yaml

from lab.settings import LAB
from streamapp.kube.rights import RIGHTS, Where


def test_what_cannot_be_done_without_is_what_the_plain_manifest_grants() -> None:
    documents = yaml.safe_load_all((LAB / "manifests" / "operator.yaml").read_text())
    (role,) = (each for each in documents if each["kind"] == "ClusterRole")
    granted: dict[tuple[str, str], set[str]] = defaultdict(set)
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                granted[group, resource] |= set(rule["verbs"])
    needed = {
        (right.group, right.path): set(right.verbs)
        for right in RIGHTS
        if right.where is Where.WATCHED and not right.optional
    }
    assert needed.items() <= granted.items()
