"""A bar that needs no colours, and falls back to ASCII."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Bar:
    """A share of a whole, `width` columns long."""

    share: float
    """From 0 to 1; a larger share is a full bar."""
    width: int
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it; a share above zero and a share below one are always visible."""
        whole, half, rest = ("#", "#", "-") if options.ascii_only else ("━", "╸", "─")
        halves = round(max(0.0, min(1.0, self.share)) * self.width * 2)
        if 0 < self.share < 1:
            halves = max(1, min(2 * self.width - 1, halves))
        done = whole * (halves // 2) + half * (halves % 2)
        yield Text.assemble((done, self.style), (rest * (self.width - len(done)), "dim"), no_wrap=True, end="")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """The width is fixed."""
        return Measurement(self.width, self.width)
