"""The bill of materials of a release, in CycloneDX's JSON (https://cyclonedx.org/docs/1.6/json/)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID, uuid5

from frazil.declaration.documents.to_json import canonical

FILE_NAME = "bill-of-materials.cdx.json"
_NAMESPACE = UUID("0d7b4a5e-1d57-4b6f-8a55-6f2d1c9b3e71")


class Kind(StrEnum):
    """The origin of a part, by the type of its package URL (https://github.com/package-url/purl-spec)."""

    PYPI = "pypi"
    MAVEN = "maven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One package or jar of a release. `group` is Maven's; `licence` is an SPDX expression, a name, or empty."""

    kind: Kind
    name: str
    version: str
    sha256: str
    licence: str = ""
    group: str = ""


def bill(parts: Sequence[Part], *, version: str, built_from: datetime) -> bytes:
    """Return the bill of materials of a release. `built_from` is the time of its commit, so equal releases have equal bills."""
    from cyclonedx.factory.license import LicenseFactory
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    product = Component(name="frazil", version=version, type=ComponentType.APPLICATION, bom_ref=f"frazil@{version}")
    components = []
    for part in sorted(parts, key=lambda p: (p.kind, p.group, p.name)):
        url = PackageURL(part.kind.value, part.group or None, part.name, part.version)
        components.append(
            Component(
                name=part.name,
                group=part.group or None,
                version=part.version,
                type=ComponentType.LIBRARY,
                bom_ref=str(url),
                purl=url,
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=part.sha256)],
                licenses=[LicenseFactory().make_from_string(part.licence)] if part.licence else [],
            )
        )
    content = canonical({"version": version, "parts": sorted([part.name, part.version, part.sha256] for part in parts)})
    made = Bom(
        components=components,
        serial_number=uuid5(_NAMESPACE, content.decode()),
        metadata=BomMetaData(component=product, timestamp=built_from),
    )
    made.register_dependency(product, components)
    return JsonV1Dot6(made).output_as_string(indent=2).encode() + b"\n"
