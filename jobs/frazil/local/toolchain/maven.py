"""Maven artifacts, fetched by pyspark's Ivy: it needs a JVM only, no installation and no configured address.

Ivy asks its default repository for exactly the named files. It reads no POM, because dependencies are not wanted; that
takes a third of the time. `FRAZIL_MAVEN_MIRROR` is the address of another repository. `FRAZIL_IVY_SETTINGS` is a settings
file of Ivy, which can also hold logins.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from frazil.errors import JarsUnavailable
from frazil.local.toolchain.java import java

SETTINGS = "FRAZIL_IVY_SETTINGS"
MIRROR = "FRAZIL_MAVEN_MIRROR"
CACHE = "cache"
"""The folder in which Ivy downloads."""
_REMEDY = f"Is there a network? For a mirror set {MIRROR}, for a folder of jars FRAZIL_JARS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One file of the lock, by its Maven coordinates."""

    group: str
    name: str
    version: str
    type: str
    sha256: str
    licence: str
    purposes: tuple[str, ...]
    classifier: str = ""
    size_bytes: int = 0
    """Zero if the lock does not have it. Only progress shows it: the hash proves a file."""

    @property
    def file_name(self) -> str:
        """`name-version.jar`, or `name-version-classifier.tar.gz`."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.type}"

    @property
    def path(self) -> str:
        """The file's path in the cache."""
        return f"{self.group}/{self.file_name}"

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}" + (f":{self.classifier}" if self.classifier else "")


def fetch(artifacts: Sequence[Artifact], folder: Path, variables: Mapping[str, str]) -> list[Path]:
    """Fetch these artifacts into a folder that no other process uses. Return the files in the same order, unchecked.

    `variables` may name a mirror or settings of Ivy. Raises `JarsUnavailable` with Ivy's messages if a file cannot be fetched.
    """
    retrieved, request = folder / "retrieved", folder / "ivy.xml"
    request.write_text(_module(artifacts))
    settings = _settings(folder, variables)
    command = [str(java()), "-jar", str(_ivy_jar()), "-settings", str(settings), "-ivy", str(request)]
    command += ["-cache", str(folder / CACHE)]
    command += ["-retrieve", f"{retrieved}/[organisation]/[artifact]-[revision](-[classifier]).[ext]"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    files = [retrieved / artifact.path for artifact in artifacts]
    absent = [str(artifact) for artifact, file in zip(artifacts, files, strict=True) if not file.is_file()]
    if absent:
        raise JarsUnavailable(
            f"{len(absent)} of {len(artifacts)} jars could not be fetched: {', '.join(absent[:5])}",
            where=next((f"{name}={variables[name]}" for name in (SETTINGS, MIRROR) if variables.get(name)), "Maven"),
            do=f"{_REMEDY}. Ivy printed: {_complaints(run.stdout + run.stderr)}",
        )
    return files


def _settings(folder: Path, variables: Mapping[str, str]) -> Path:
    """Return the settings file that the variables name, else a new one. Raises `JarsUnavailable` if they cannot be used."""
    if given := variables.get(SETTINGS):
        if not Path(given).is_file():
            raise JarsUnavailable("the file does not exist", where=f"{SETTINGS}={given}", do="Name Ivy's settings file")
        return Path(given)
    root = ""
    if mirror := variables.get(MIRROR):
        address = urlsplit(mirror)
        if "@" in address.netloc:
            do = f"Put the login into a settings file of Ivy, and set {SETTINGS}"
            raise JarsUnavailable("the address of the mirror has a login", where=MIRROR, do=do)
        if address.scheme not in ("https", "http", "file"):
            raise JarsUnavailable("it is no address", where=f"{MIRROR}={mirror}", do="Use https, http or file")
        root = f" root={quoteattr(mirror.rstrip('/') + '/')}"
    made = folder / "settings.xml"
    made.write_text(
        '<ivysettings><settings defaultResolver="maven"/><resolvers><ibiblio name="maven" m2compatible="true"'
        f' usepoms="false" useMavenMetadata="false"{root}/></resolvers></ivysettings>'
    )
    return made


def _module(artifacts: Sequence[Artifact]) -> str:
    """Write the list as an Ivy module of its own."""
    rows = []
    for artifact in artifacts:
        extra = f" m:classifier={quoteattr(artifact.classifier)}" if artifact.classifier else ""
        kind = quoteattr(artifact.type)
        rows.append(
            f"<dependency org={quoteattr(artifact.group)} name={quoteattr(artifact.name)}"
            f' rev={quoteattr(artifact.version)} transitive="false" conf="*->*">'
            f"<artifact name={quoteattr(artifact.name)} type={kind} ext={kind}{extra}/></dependency>"
        )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="frazil" module="jars"/><configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(rows)}</dependencies></ivy-module>"
    )


def _ivy_jar() -> Path:
    """Return the path of pyspark's Ivy, without importing pyspark."""
    pyspark = find_spec("pyspark")
    folders = list(pyspark.submodule_search_locations or ()) if pyspark else []
    found = sorted(jar for folder in folders for jar in Path(folder, "jars").glob("ivy-*.jar"))
    if not found:
        raise JarsUnavailable(
            "jars are fetched by pyspark's Ivy, and there is no pyspark", do="pip install 'frazil[cli]'"
        )
    return found[-1]


def _complaints(output: str) -> str:
    """Return Ivy's complaints on one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    complaints = [line for line in lines if any(word in line for word in ("WARN", "ERROR", "not found"))]
    return " | ".join((complaints or lines)[-4:])
