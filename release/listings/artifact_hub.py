"""Writes the annotations of Chart.yaml that Artifact Hub shows and that differ by release.

Called by `release.parts.chart`. What is the same in each release stands in Chart.yaml itself. Source: the page on Helm
annotations of Artifact Hub's documentation.
"""

import re
from collections.abc import Iterator, Mapping

import yaml

from release.changelog import Section
from release.listings.publication import Publication

PREFIX = "artifacthub.io/"
KINDS = {
    "What it does": "added",
    "Added": "added",
    "Breaking": "changed",
    "Changed": "changed",
    "Deprecated": "deprecated",
    "Removed": "removed",
    "Fixed": "fixed",
    "Security": "security",
}
"""The kind of a change by the first words of its heading; other headings with entries count as `changed`."""
NO_CHANGE = ("What it needs", "What is known to be missing")
_PART = re.compile(r"^### (.+?)$(.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^- (.+(?:\n  .+)*)", re.MULTILINE)


def annotations(notes: Section, digests: Mapping[str, str], publication: Publication) -> dict[str, str]:
    """Give the annotations by name; `digests` are `sha256:…` by the name of an image.

    Images are named only if the maker publishes them in a registry, and the key only if the maker serves it.
    """
    told = list(changes(notes))
    found = {
        "changes": _listed(told),
        "containsSecurityUpdates": str(any(each["kind"] == "security" for each in told)).lower(),
        "prerelease": str("-" in notes.version).lower(),
    }
    if publication.registry:
        images = [{"name": name, "image": publication.image(name, digest)} for name, digest in digests.items()]
        found["images"] = _listed(images)
    if publication.key and publication.fingerprint:
        found["signKey"] = f"fingerprint: {publication.fingerprint}\nurl: {publication.key}\n"
    return {f"{PREFIX}{name}": text for name, text in found.items()}


def changes(notes: Section) -> Iterator[dict[str, str]]:
    """Give each entry of a section of the changelog as kind and plain text."""
    for heading, text in _PART.findall(notes.text):
        if not heading.startswith(NO_CHANGE):
            kind = next((kind for start, kind in KINDS.items() if heading.startswith(start)), "changed")
            yield from ({"kind": kind, "description": plain(entry)} for entry in _ENTRY.findall(text))


def plain(markdown: str) -> str:
    """Take links, emphasis and line breaks out of Markdown."""
    text = re.sub(r"\s*\(\[[^\]]*\]\([^)]*\)\)", "", markdown)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(text.replace("**", "").replace("`", "").split())


def _listed(entries: list[dict[str, str]]) -> str:
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000)
