"""Values that stand for nothing in tests, told apart from None."""


class Sentinel:
    """Shown by its name and without an address, so that the names of tests are the same in every process."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name
