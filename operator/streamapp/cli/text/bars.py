"""A bar that says the same with and without colours, and in ASCII where a terminal has nothing else."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Bar:
    """A share of a whole, `width` columns long."""

    share: float
    """From 0 to 1; more is a full bar."""
    width: int
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it; anything above nothing can be seen, and anything short of full as well."""
        whole, half, rest = ("#", "#", "-") if options.ascii_only else ("━", "╸", "─")
        halves = round(max(0.0, min(1.0, self.share)) * self.width * 2)
        if 0 < self.share < 1:
            halves = max(1, min(2 * self.width - 1, halves))
        done = whole * (halves // 2) + half * (halves % 2)
        yield Text.assemble((done, self.style), (rest * (self.width - len(done)), "dim"), no_wrap=True, end="")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """It is as long as it is."""
        return Measurement(self.width, self.width)
