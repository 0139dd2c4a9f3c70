"""A kubectl for tests that only need its handling of kubeconfig files."""

import shutil
from pathlib import Path

import pytest

from lab.settings import Settings


@pytest.fixture
def kubectl() -> Path:
    """Find a kubectl: the machine's, or the one that the lab built."""
    if found := shutil.which("kubectl"):
        return Path(found)
    built = sorted(Settings.from_environment().cache.glob("labkube*/**/kubectl"))
    if not built:
        pytest.skip("no kubectl yet: `python -m lab build` makes one")
    return built[-1]
