"""The operator's flight record, taken out of its pods as a user does it: `kubectl exec` and tar.

Every pod is asked, since one that led before has what was until then.
"""

import io
import subprocess
import tarfile
from pathlib import Path

from lab.archives import unpack
from lab.clusters.kubectl import Kubectl
from lab.errors import LabError
from lab.scenarios import operator_deployment

WRITTEN_WITHIN_SECONDS = 10.0
"""After so long a line is in a file (`file_writer.RecordFiles.flush_seconds`)."""
_TIMEOUT_SECONDS = 120
_COMMAND = ("python3", "-m", "streamapp.controller.record.archive")


def take(kubectl: Kubectl, folder: Path) -> list[Path]:
    """Put the record of every pod of the operator into a folder; give its files.

    Raises:
        LabError: a pod does not give it, or there is none in any.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in operator_deployment.pods(kubectl):
        _unpack(name, _from_pod(kubectl, name), folder)
    found = sorted(folder.rglob("*.jsonl.gz"))
    if not found:
        raise LabError(
            "flight record: no pod of the operator has any",
            f"no file *.jsonl.gz came into {folder}",
            "see that record.enabled is true in the chart's values, and that a StreamApp is there",
        )
    return found


def _from_pod(kubectl: Kubectl, name: str) -> bytes:
    words = ("exec", "--namespace", operator_deployment.NAMESPACE, name, "--container=operator", "--", *_COMMAND)
    session = kubectl.session
    try:
        ran = subprocess.run(
            (*session.prefix, "kubectl", *words),
            env=session.environment,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"flight record of {name}: not taken", str(error), "look at `python -m lab status`") from error
    if ran.returncode:
        why = ran.stderr.decode(errors="replace").strip() or f"exit code {ran.returncode}"
        raise LabError(f"flight record of {name}: not taken", why, f"try `kubectl {' '.join(words)} | tar -t`")
    return ran.stdout


def _unpack(name: str, packed: bytes, folder: Path) -> None:
    try:
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            unpack(tar, folder)
    except tarfile.TarError as error:
        raise LabError(
            f"flight record of {name}: what it gave is no tar", str(error), "look at the operator's image and its log"
        ) from error
