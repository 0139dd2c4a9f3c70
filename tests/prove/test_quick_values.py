"""What the long sweep makes faster is what ships: equal values, the same defaults, frozen."""

from dataclasses import KW_ONLY, FrozenInstanceError, dataclass, field

import pytest

from tests.prove.quick_values import init_of


@dataclass(frozen=True, slots=True)
class _Base:
    first: int
    second: str = "two"


@dataclass(frozen=True, slots=True)
class _Value(_Base):
    third: list[int] = field(default_factory=list)
    _: KW_ONLY
    fourth: int | None = None

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError(self.first)


def test_a_value_that_is_made_quickly_is_the_value_that_ships(monkeypatch: pytest.MonkeyPatch) -> None:
    given: tuple[tuple[tuple[object, ...], dict[str, object]], ...] = (
        ((1,), {}),
        ((1, "x", [3]), {"fourth": 4}),
        ((), {"second": "y", "first": 7}),
    )
    shipped = [_Value(*args, **named) for args, named in given]  # type: ignore[arg-type]
    monkeypatch.setattr(_Value, "__init__", init_of(_Value))
    made = [_Value(*args, **named) for args, named in given]  # type: ignore[arg-type]

    assert made == shipped
    assert made[0].third is not made[2].third
    with pytest.raises(FrozenInstanceError):
        made[0].first = 2  # type: ignore[misc]
    with pytest.raises(ValueError, match="-1"):
        _Value(-1)
    with pytest.raises(TypeError, match="positional"):
        _Value(1, "x", [3], 4)  # type: ignore[call-arg]
