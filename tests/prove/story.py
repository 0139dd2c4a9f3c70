"""A story: one scene, a seed, and what is made to go wrong or to happen at which call. It is the whole input of a run.

As text it is one line, `down-4-3 seed=7 write:5:crash-after read:12:kill:2`, which plays the same run again.
"""

from dataclasses import dataclass

SITES = (
    *("read", "write", "lease", "kafka", "config", "config-write", "agent", "event", "told", "removal"),
    "second",
)
"""Where a disturbance can be placed: at the n-th read or write of the API server or call for the Lease, at the n-th
call to the brokers, read or write of a group's setting or round of questions to the agents, at the n-th event of a
watch (counted from the beginning of the story, where it begins), at the n-th event that a process is told, right after
the n-th removal, or so many seconds after the beginning."""


@dataclass(frozen=True, slots=True, order=True)
class Disturbance:
    """One thing, once."""

    site: str
    number: int
    what: str
    which: int = 0
    """What this counts depends on `what`: an ordinal, versions, seconds."""

    def __str__(self) -> str:
        """`write:5:kill:2`."""
        which = f":{self.which}" if self.which else ""
        return f"{self.site}:{self.number}:{self.what}{which}"

    @classmethod
    def parse(cls, text: str) -> "Disturbance":
        """Read it back; ValueError if it is none."""
        site, number, what, *which = text.split(":")
        if site not in SITES or len(which) > 1:
            raise ValueError(f"{text!r} is no disturbance; the sites are {', '.join(SITES)}")
        return cls(site, int(number), what, int(which[0]) if which else 0)


@dataclass(frozen=True, slots=True)
class Story:
    """One run."""

    scene: str
    seed: int = 0
    """Of latencies, heartbeats and pauses."""
    disturbances: tuple[Disturbance, ...] = ()
    kind: str = "none"
    """Under which name it is counted."""

    def __str__(self) -> str:
        """On one line."""
        return " ".join([self.scene, f"seed={self.seed}", *map(str, self.disturbances)])

    @classmethod
    def parse(cls, text: str) -> "Story":
        """Read it back; ValueError if it is none."""
        scene, seed, *others = text.split()
        disturbances = tuple(map(Disturbance.parse, others))
        return cls(scene, int(seed.removeprefix("seed=")), disturbances, "replayed")
