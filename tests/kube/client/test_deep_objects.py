"""Objects that are nested as deep as the API server lets them: both entry scripts can read them."""

import subprocess
import sys

import pytest

from streamapp import __main__ as operator_script
from streamapp.cli import __main__ as plugin_script
from streamapp.kube.client import deep_objects

PROGRAM = """
import json, threading
from streamapp.api.validation.parse import InvalidStreamApp, parse
from streamapp.kube.client.deep_objects import MOST_LEVELS, allow_deep_objects

allow_deep_objects()
metadata = {"name": "deep", "namespace": "demo", "uid": "u", "generation": 1, "resourceVersion": "1"}
metadata["creationTimestamp"] = "2026-01-02T03:04:05Z"
around = json.dumps({"metadata": metadata, "spec": {"template": {"spec": {"containers": [{"name": "a"}], "x": 0}}}})

def read():
    for begin, end in (('{"a":', '}'), ('[', ']')):
        text = around.replace('"x": 0', '"x": ' + begin * MOST_LEVELS + '0' + end * MOST_LEVELS)
        one, other = json.loads(text), json.loads(text)
        assert one == other and len(json.dumps(one)) >= 2 * MOST_LEVELS
        found = parse(one)
        assert isinstance(found, InvalidStreamApp), found
        print("nested deeper than 100 levels" in found.sentence)
        try:
            json.loads(begin * 1_000_000)
        except RecursionError:
            print("refused")

read()
thread = threading.Thread(target=read)
thread.start()
thread.join()
"""


@pytest.mark.slow
@pytest.mark.guarantee(3)
def test_ten_thousand_levels_are_read_compared_and_written_in_every_thread_and_more_are_refused() -> None:
    # In a process of its own: the limit is of the whole process.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["True", "refused"] * 4, "")


@pytest.mark.guarantee(3)
def test_both_entry_scripts_can_read_deep_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setattr(sys, "setrecursionlimit", limits.append)
    monkeypatch.setattr(sys, "argv", ["streamapp"])
    monkeypatch.setenv("STREAMAPP_PORT", "none")
    assert (operator_script.main(), plugin_script.main(["--version"])) == (1, 0)
    assert limits == [deep_objects.MOST_LEVELS + deep_objects.CALLS] * 2
