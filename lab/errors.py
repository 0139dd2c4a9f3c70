"""The one kind of error that the lab raises on purpose.

Each names the object, the cause and the next step, so that the command line prints it as it is and a reader needs
no stack trace.
"""

from dataclasses import dataclass


@dataclass
class LabError(Exception):
    """What a person sees when the lab cannot go on."""

    what: str
    """The object and what failed, for example `image kafka: the build failed`."""
    why: str
    """The cause, as far as known: the last lines of a tool's output, a missing right."""
    next_step: str
    """What to do about it, as a command where there is one."""

    def __str__(self) -> str:
        """Give the three parts on three lines, as the terminal shows them."""
        return f"{self.what}\n  cause: {self.why}\n  next:  {self.next_step}"


class NotYetError(LabError):
    """Something that may be different in a moment: whoever waits for it asks again, every other error ends the wait."""
