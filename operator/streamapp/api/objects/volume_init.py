"""The init container that prepares an ordinal's volume before its application starts (`operator/images/seed`).

It gives the state directory its process file, if there is none, and removes state that lay unused for too long. Called
by `manifests`. The program knows nothing about StreamApps: everything it is told stands in its arguments.
"""

from typing import Any

from streamapp.api.names import POD_INDEX_LABEL
from streamapp.api.objects.init_containers import REPORT, init_container, literally
from streamapp.api.v1alpha1.durations import format_duration
from streamapp.api.v1alpha1.spec import State
from streamapp.api.validation.conflicts import SEEDER
from streamapp.api.validation.parse import StreamApp
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.seeding import seeded_process_id

_ORDINAL = "ORDINAL"
_LABEL = f"metadata.labels['{POD_INDEX_LABEL}']"


def seeder(app: StreamApp, state: State, *, image: str, pull_policy: str) -> dict[str, Any]:
    """The container, for any ordinal: it learns its own from Kubernetes."""
    container = init_container(
        app,
        name=SEEDER,
        image=image,
        pull_policy=pull_policy,
        args=[
            f"--state-dir={literally(state.directory)}",
            f"--application-id={app.spec.application_id}",
            f"--ordinal=$({_ORDINAL})",
            f"--id-suffix={_suffix(app.metadata.uid)}",
            f"--max-age={format_duration(state.max_idle_time)}",
            f"--report={REPORT}",
        ],
        mount={"name": state.claim_name, "mountPath": state.mount_path},
    )
    label = {"fieldRef": {"apiVersion": "v1", "fieldPath": _LABEL}}
    return {**container, "env": [{"name": _ORDINAL, "valueFrom": label}]}


def _suffix(uid: str) -> str:
    """What all process IDs of the StreamApp have in common, after the ordinal."""
    _, _, suffix = str(seeded_process_id(uid, Ordinal(0))).partition("-")
    return suffix
