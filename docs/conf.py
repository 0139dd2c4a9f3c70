"""How Sphinx makes the site of the documentation: `make docs`.

The pages are the Markdown files where they lie, read as a code host shows them; only the navigation is added here. The
root of the sources is the repository's, so that links between the parts are the same on the host and on the site.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent

project = "streamapp-operator"
author = "The streamapp-operator authors"
project_copyright = "the streamapp-operator authors"
version = release = os.environ.get("DOCS_VERSION") or "main"
html_title = f"{project} {version}"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "README"
include_patterns = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "THIRD-PARTY-LICENSES.md", "docs/**.md"),
    *(f"{part}/**/README.md" for part in ("agent", "charts", "examples")),
]
exclude_patterns = ["**/target/**", "**/.*"]
nitpicky = True
myst_heading_anchors = 4

# The same characters as on a code host: quotes in messages are often to be typed.
smartquotes = False

html_theme = "furo"
html_static_path: list[str] = ["site/static"]
html_css_files = ["wide-tables.css", "version-switch.css"]
templates_path = ["site/templates"]
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "sidebar/versions.html", "sidebar/search.html", "sidebar/scroll-start.html"),
        *("sidebar/navigation.html", "sidebar/scroll-end.html", "sidebar/variant-selector.html"),
    ]
}
html_extra_path = ["site/index.html"]
html_show_sphinx = False
html_copy_source = False
# Commands, screens and logs; what is in another language says so itself.
highlight_language = "none"
# Samples may leave out what does not matter with `…`.
suppress_warnings = ["misc.highlighting_failure"]

NAVIGATION = {
    "Use": [
        "docs/operations",
        "docs/runbooks",
        "docs/streams-protocol",
        "charts/**/README",
        "docs/command-line",
        "docs/releases",
        "docs/agents",
        "docs/restore-limits",
        "docs/how-to/capacity",
        "docs/autoscaling",
        "docs/how-to/plain-main",
        "docs/how-to/*",
        "docs/kafka-rights",
        "docs/kafka-security",
        "docs/security",
        "SECURITY",
    ],
    "Reference": [
        "docs/resource",
        "docs/reasons",
        "docs/diagnoses",
        "docs/state-table",
        "docs/metrics",
        "docs/flight-record",
        "docs/analytics",
        "docs/gold",
        "docs/values",
        "docs/glossary",
    ],
    "Understand": [
        "docs/architecture",
        "docs/agent-internals",
        "agent/assignor/README",
        "agent/protocol/README",
        "docs/model/README",
        "docs/proofs",
        "docs/proof-figures",
        "docs/shell-safeguards",
        "docs/benchmarks",
        "docs/chaos",
        "docs/agent-matrix",
        "docs/decisions/README",
    ],
    "Contribute": [
        "CONTRIBUTING",
        "docs/lab",
        "agent/agent/README",
        "examples/*/README",
        "CHANGELOG",
        "THIRD-PARTY-LICENSES",
    ],
}
"""Pages by part, in order; patterns are those of `Path.glob`. A page that is in none of them fails the build."""

BELOW = {
    "docs/decisions/README": ["docs/decisions/0*"],
    "docs/model/README": ["docs/model/[a-z]*"],
    "agent/assignor/README": ["agent/assignor/src/**/README"],
}
"""Pages that have others below them."""


def contents(caption: str, patterns: list[str]) -> str:
    """A table of contents that is in the navigation alone; what a pattern does not find is left out."""
    found = [path.relative_to(ROOT).with_suffix("") for name in patterns for path in sorted(ROOT.glob(f"{name}.md"))]
    # A page that is named goes before the others that its pattern finds.
    entries = "".join(f"/{page}\n" for page in dict.fromkeys(found) if "target" not in page.parts)
    return f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}```\n"


def add_navigation(_: "Sphinx", page: str, source: list[str]) -> None:
    """Put the tables of contents under the pages that have them."""
    if page == root_doc:
        source[0] += "\n\n```{toctree}\n:hidden:\n:caption: Start\n\nThe promise, and five minutes <self>\n```\n"
        source[0] += "".join(contents(caption, patterns) for caption, patterns in NAVIGATION.items())
    elif page in BELOW:
        source[0] += contents("", BELOW[page]).replace(":caption: \n", "")


def setup(app: "Sphinx") -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_navigation)
