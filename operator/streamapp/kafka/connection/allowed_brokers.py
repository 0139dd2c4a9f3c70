"""Which brokers the operator may connect to: a list that the administrator gives, against a tenant's own addresses.

Used by `settings` and `connector`, so that it covers what a StreamApp names and what brokers name in their answers. The
chart's policy asks the same of `spec.kafka.bootstrapServers` when a StreamApp is written.
"""

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class AllowedBrokers:
    """Patterns `host:port`, where `*` stands for any letters, digits, dots and hyphens; none allow every broker."""

    patterns: tuple[str, ...] = ()

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        parts = (re.escape(pattern).replace(r"\*", "[a-z0-9.-]*") for pattern in self.patterns)
        return re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE | re.ASCII)

    def allow(self, host: str, port: int) -> bool:
        """Whether the operator may connect there."""
        return not self.patterns or self._expression.fullmatch(f"{host}:{port}") is not None


EVERY_BROKER = AllowedBrokers()
