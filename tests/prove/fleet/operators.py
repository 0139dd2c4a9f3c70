"""Several operators in one world, each with processes of its own: they stand where one `Lives` does."""

from collections.abc import Callable, Mapping, Sequence

from tests.prove.instance import Instance, Lives


class Operators:
    """All of them."""

    def __init__(self, lives: Sequence[Lives]) -> None:
        self._lives = lives

    def begin(self) -> None:
        """Start each."""
        for one in self._lives:
            one.begin()

    def end(self) -> None:
        """The story is over."""
        for one in self._lives:
            one.end()

    @property
    def present(self) -> Instance | None:
        """The process of the first; None where any of them has none."""
        found = [one.present for one in self._lives]
        return None if None in found else found[0]

    def deeds(self, number: int = 0) -> Mapping[str, Callable[[int], object]]:
        """What can befall one of them."""
        return self._lives[min(number, len(self._lives) - 1)].deeds()
