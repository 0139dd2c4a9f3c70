"""Writes bills of materials in CycloneDX: one for each artifact, valid against the format's own schema.

Called by `release.build`, with what `contents` found. The same artifact gives the same bytes: the serial number comes
from its digest, and the time is that of the commit.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from lab.errors import LabError
from release import archives
from release.records.contents import Part
from release.source import Source

SUFFIX = ".cdx.json"
VERSION = SchemaVersion.V1_6


def write(artifact: Path, parts: Iterable[Part], source: Source) -> Path:
    """Write the bill of an artifact beside it; give its path. Raises LabError if it breaks the schema."""
    digest = archives.digest(artifact)
    kind = ComponentType.CONTAINER if artifact.name.endswith(".oci.tar") else ComponentType.FILE
    whole = Component(
        name=artifact.name,
        version=source.version,
        type=kind,
        bom_ref=artifact.name,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
    )
    components = [_component(part) for part in parts]
    bom = Bom(
        serial_number=uuid5(NAMESPACE_OID, f"{artifact.name} {digest}"),
        metadata=BomMetaData(component=whole, timestamp=datetime.fromtimestamp(source.epoch, UTC)),
        components=components,
    )
    bom.register_dependency(whole, components)
    text = make_outputter(bom, OutputFormat.JSON, VERSION).output_as_string(indent=1)
    problem = JsonStrictValidator(VERSION).validate_str(text)
    if problem is not None:
        raise LabError(f"bill of {artifact.name}: not valid", str(problem), "fix what release/records/bills.py writes")
    written = artifact.with_name(f"{artifact.name}{SUFFIX}")
    written.write_text(text + "\n")
    return written


def _component(part: Part) -> Component:
    namespace, _, name = part.name.rpartition("/")
    qualifiers = {"arch": part.processor} if part.processor else None
    address = PackageURL(part.kind, namespace or None, name, part.version, qualifiers)
    return Component(
        name=name,
        group=namespace or None,
        version=part.version,
        type=ComponentType.CONTAINER if part.kind == "oci" else ComponentType.LIBRARY,
        purl=address,
        bom_ref=address.to_string(),
        licenses=[LicenseFactory().make_from_string(part.licence)] if part.licence else None,
    )
