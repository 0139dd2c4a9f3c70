"""Quantities as Kubernetes writes them: `500m`, `64Mi`, `1e3`. The one parser.

Used for fields of the StreamApp and for the figures of a ResourceQuota.
"""

import re
from decimal import Decimal
from functools import lru_cache

_PATTERN = re.compile(r"([+-]?[0-9]*\.?[0-9]*)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?[0-9]{1,3})?", re.ASCII)
_FACTORS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


@lru_cache(maxsize=256)  # each pass reads the same few
def parse_quantity(text: str) -> Decimal:
    """Give the number in its base unit: bytes, cores or pieces; ValueError for what is no quantity."""
    match = _PATTERN.fullmatch(text)
    if match is None or not any(letter.isdigit() for letter in match[1]):
        raise ValueError(f"{text[:40]!r} is no quantity")
    suffix = match[2] or ""
    if suffix in _FACTORS:
        return Decimal(match[1]) * _FACTORS[suffix]
    return Decimal(f"{match[1]}{suffix}")
