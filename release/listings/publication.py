"""Where the maker of a release publishes it, as the maker says; empty for what is not published.

Called by everything that writes an address into a release.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Publication:
    """Addresses that the maker gives to `make release`."""

    files: str = ""
    """The folder from which users load the files."""
    registry: str = ""
    """What stands before `/operator`, `/seed` and `/agent`, for example `registry.example/streamapp`."""
    key: str = ""
    """Where the public OpenPGP key of the chart is served."""
    fingerprint: str = ""
    """Of that key, in hexadecimal digits."""

    def parameters(self) -> dict[str, str]:
        """Give what the statement of provenance has of it."""
        return {"url": self.files, "registry": self.registry, "keyUrl": self.key, "fingerprint": self.fingerprint}

    def image(self, name: str, digest: str) -> str:
        """Name an image by its digest, as a cluster pulls it."""
        return f"{self.registry}/{name}@{digest}"
