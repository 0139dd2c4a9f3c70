"""Images of the example application as a Spring Boot fat jar and as a Quarkus fast-jar.

Called by `python -m lab build --launchers` and by the tests that run them as pods; nothing else in the lab needs them.
The versions are those of the poms.
"""

from collections.abc import Mapping

from lab.build import bases, maven
from lab.build.cache import Cache
from lab.build.images import BuiltImage, Image, build_image
from lab.build.launchers import LAUNCHERS
from lab.settings import Settings, Versions

NAMES = ("spring-boot", "quarkus")
"""The folders of `examples/launchers` that have a Dockerfile, and the names of their images."""
_CONTENTS = {"spring-boot": "application.jar", "quarkus": "quarkus-app"}
"""What each Dockerfile copies from `target`."""


def build_launcher_images(settings: Settings) -> Mapping[str, BuiltImage]:
    """Build the images that are not in the cache yet, and give them by name. Raises LabError."""
    versions, cache = settings.versions, Cache(settings.cache)
    java = bases.debian_java(versions, cache)
    return {name: build_image(_image(name, versions, cache, java), versions, cache) for name in NAMES}


def _image(name: str, versions: Versions, cache: Cache, base: BuiltImage) -> Image:
    made = maven.module(LAUNCHERS, name, f"Package the example application: {name}", versions, cache, {})
    content = _CONTENTS[name]
    return Image(
        f"streamapp/{name}", "lab", LAUNCHERS / name / "Dockerfile", {f"target/{content}": made / content}, base
    )
