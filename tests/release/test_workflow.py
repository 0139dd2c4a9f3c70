"""The workflow of a hosted CI calls the project's own targets, and the judge of workflows accepts it."""

import re
import subprocess

import pytest
import yaml

from lab.build.cache import Cache
from lab.settings import REPOSITORY, Settings
from release import tools

WORKFLOW = REPOSITORY / ".github" / "workflows" / "release.yaml"
MAKEFILE = (REPOSITORY / "Makefile").read_text()


def test_it_calls_targets_that_are_there() -> None:
    called = re.findall(r"^ +make ([a-z-]+)", WORKFLOW.read_text(), re.MULTILINE)
    assert called == ["setup", "release", "verify-release", "docs"]
    assert [name for name in called if not re.search(rf"^{name}:", MAKEFILE, re.MULTILINE)] == []


def test_others_actions_are_named_by_a_commit_and_get_no_right_to_write() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    used = [step["uses"] for step in workflow["jobs"]["release"]["steps"] if "uses" in step]
    assert len(used) == 3
    assert [action for action in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)] == []


@pytest.mark.registries
@pytest.mark.timeout(600)
def test_actionlint_accepts_it_and_refuses_a_mistake() -> None:
    settings = Settings.from_environment()
    program = tools.actionlint(settings.versions, Cache(settings.cache))
    text = WORKFLOW.read_text()
    for given, code in ((text, 0), (text.replace("runs-on:", "run-on:"), 1)):
        ran = subprocess.run([program, "-"], input=given, capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran.stdout
