"""Writes the statement of where a release comes from: in-toto, with SLSA's predicate of provenance.

Called by `release.build`. It says what this project can know: the commit, the locks and the tools. Nobody but the
owner of the key vouches for it, which is SLSA's level 1.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from release import archives
from release.source import Source

NAME = "provenance.intoto.json"
LOCKS = ("uv.lock", "versions.toml", "release/parts/build-requirements.txt")
BUILD_TYPE = "tag:streamapp.dev,2026:make-release"
BUILDER = "tag:streamapp.dev,2026:own-machine"
"""No hosted builder vouches for the build."""


def statement(
    source: Source, artifacts: Iterable[Path], tools: Mapping[str, str], parameters: Mapping[str, str]
) -> str:
    """Give the statement as JSON; `tools` has what each tool says of its version."""
    locks = [{"name": name, "digest": {"sha256": archives.digest(source.folder / name)}} for name in LOCKS]
    commit = {"name": "source", "digest": {"gitCommit": source.commit}}
    whole = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": path.name, "digest": {"sha256": archives.digest(path)}}
            for path in sorted(artifacts, key=lambda path: path.name)
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": source.version, **parameters},
                "internalParameters": {"tools": dict(tools)},
                "resolvedDependencies": [commit, *locks],
            },
            # Without the times of the run: the same commit gives the same statement.
            "runDetails": {"builder": {"id": BUILDER}},
        },
    }
    return json.dumps(whole, indent=1) + "\n"
