"""A watch whose events are dated as they arrive, all by one clock, so that two of them can be compared."""

import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from lab.clusters.cluster import Session

_ENDS_WITHIN_SECONDS = 10.0


@dataclass(frozen=True)
class Seen:
    """What an object said from a moment on."""

    at: float
    """Seconds of this machine's monotonic clock, when the event arrived."""
    words: tuple[str, ...]


@dataclass
class TimedWatch:
    """The events so far, in order."""

    events: list[Seen] = field(default_factory=list)

    def first(self, *words: str, since: float = 0.0) -> Seen | None:
        """Give the first event since then that begins with these words."""
        return next((one for one in self.events if one.at >= since and one.words[: len(words)] == words), None)


@contextmanager
def timed_watch(session: Session, namespace: str, target: str, fields: Sequence[str]) -> Iterator[TimedWatch]:
    """Watch one object until the block is left.

    Args:
        session: Where.
        namespace: Of the object.
        target: Kind and name, as `streamapp/counter`.
        fields: Paths of kubectl's JSONPath; each gives one word of an event, which may be empty.
    """
    template = "|".join(f"{{{each}}}" for each in fields) + '{"\\n"}'
    command = ("kubectl", "get", target, "--namespace", namespace, "--watch", f"--output=jsonpath={template}")
    watch, found = TimedWatch(), (*session.prefix, *command)
    with subprocess.Popen(found, env=session.environment, stdout=subprocess.PIPE, text=True) as process:
        stream = process.stdout
        if stream is None:
            raise TypeError("the watch was started without its pipe")

        def read() -> None:
            for line in stream:
                watch.events.append(Seen(time.monotonic(), tuple(line.rstrip("\n").split("|"))))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield watch
        finally:
            process.terminate()
            process.wait(_ENDS_WITHIN_SECONDS)
            reader.join(_ENDS_WITHIN_SECONDS)
