"""Which gates refuse in a story, and which of them alone: only there can a story show that a gate is missing."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from streamapp.core.evidence.refusal import Refusal
from streamapp.core.gates import evaluate
from streamapp.core.gates.case import Gate, GateInput
from tests.prove.gate_mutants import chains_by_name


@contextmanager
def counted() -> Iterator[Counter[tuple[str, str, str]]]:
    """Count, by chain and gate: `alone`, or the names of the other gates of the chain that refused as well."""
    found: Counter[tuple[str, str, str]] = Counter()
    names = {frozenset(gate.__name__ for gate in chain): name for name, chain in chains_by_name().items()}
    sound = evaluate.first_refusal

    def first_refusal(gates: Iterable[Gate], case: GateInput) -> Refusal | None:
        asked = tuple(gates)
        chain = names.get(frozenset(gate.__name__ for gate in asked), "")
        refused = [gate.__name__ for gate in asked if gate(case) is not None]
        for gate in refused:
            others = "+".join(other for other in refused if other != gate)
            found[chain, gate, others or "alone"] += 1
        return sound(asked, case)

    with patch.object(evaluate, "first_refusal", first_refusal):
        yield found
