"""What `adopt` and `disown` show: the findings, and the manifest as YAML. Pure."""

from collections.abc import Sequence
from typing import Any

import yaml
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamapp.cli.adoption.findings import Finding
from streamapp.cli.text.sanitize import plain
from streamapp.core.doctor.diagnoses import Severity

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "cyan"}


def findings_screen(title: str, findings: Sequence[Finding]) -> RenderableType:
    """Show the findings, the worst first."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column("severity", no_wrap=True)
    table.add_column("what", overflow="fold")
    order = list(_STYLES)
    for finding in sorted(findings, key=lambda one: order.index(one.check.severity)):
        check = finding.check
        mark = Text(check.severity.value, style=_STYLES[check.severity])
        words = Text.assemble((check.name, "bold"), f"  {check.title}\n", plain(finding.detail))
        table.add_row(mark, words.append(f"\nfix: {plain(finding.fix)}", style="dim"))
    return Group(Text(title, style="bold"), table)


def manifest_text(manifest: dict[str, Any]) -> str:
    """The manifest, as `kubectl apply` takes it."""
    return yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=120)
