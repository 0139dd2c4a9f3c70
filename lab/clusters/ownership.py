"""Tells the lab's own namespaces from those that were there before it: the lab writes and deletes only what it marked.

`kafka` and `demo` are names that anybody may have used in a cluster of their own. Asked by the clusters and the
scenarios before their first write; changes nothing itself.
"""

from lab.clusters.kubectl import Kubectl
from lab.errors import LabError

LABEL = "app.kubernetes.io/managed-by"
MARK = "streamapp-lab"


def require_own(kubectl: Kubectl, *namespaces: str) -> None:
    """Refuse namespaces that exist without the lab's label; LabError names the first of them."""
    for namespace in namespaces:
        if exists(kubectl, namespace) and not _is_marked(kubectl, namespace):
            raise LabError(
                f"namespace {namespace}: not the lab's",
                f"it exists without the label {LABEL}={MARK}, so something else than the lab made it; "
                "the lab would overwrite and delete what is in it",
                "use another cluster. Only if nothing in it is needed any more: "
                f"kubectl label namespace {namespace} {LABEL}={MARK}",
            )


def exists(kubectl: Kubectl, namespace: str) -> bool:
    """Say whether there is a namespace of that name, whoever made it."""
    return bool(kubectl.run("get", "namespace", namespace, "--ignore-not-found", "--output=name").strip())


def _is_marked(kubectl: Kubectl, namespace: str) -> bool:
    # One question and no reading of answers: a list filtered by name and label has it, or is empty.
    chosen = (f"--field-selector=metadata.name={namespace}", f"--selector={LABEL}={MARK}")
    return bool(kubectl.run("get", "namespaces", *chosen, "--output=name").strip())
