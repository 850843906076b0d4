"""Checks of this machine: Python, its packages, Java, jars, secrets, and the clock."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from frazil.clients.reachability import clock_skew
from frazil.clients.secrets import Secrets, reference
from frazil.declaration import Environment, Pipeline
from frazil.declaration.catalogs import GlueCatalog, LocalCatalog, RestCatalog
from frazil.declaration.secret import Secret, secrets_in
from frazil.doctor.check_result import Check, Step
from frazil.errors import JarMismatch, JarsUnavailable
from frazil.exit_codes import Exit
from frazil.lake.catalogs import needs_s3
from frazil.local.toolchain.jars import FOLDER, jar_state
from frazil.local.toolchain.java import java, version_text
from frazil.local.toolchain.maven import MIRROR
from frazil.version import VERSION

TESTED_JAVA = (17, 21)
EXTRA = "cli"
"""The extra of the package that landing on this machine needs."""


def steps(environment: Environment | None) -> list[Step]:
    """Return the steps of this machine; an environment without an object store needs fewer jars."""
    with_s3 = environment is None or needs_s3(environment)
    return [
        Step(name="python", work=python),
        Step(name="java", work=java_check),
        Step(name="jars", work=partial(jars_check, with_s3=with_s3)),
    ]


def python() -> Check:
    """Check Python and the versions of the packages that the wheel names."""
    wanted = metadata.requires("frazil") or ()
    found = f"{platform.python_version()}, frazil {VERSION}"
    bounds = metadata.metadata("frazil")["Requires-Python"] or ""
    if not SpecifierSet(bounds).contains(platform.python_version(), prereleases=True):
        return Check.failed("python", found, f"Use Python {bounds}", exit=Exit.INVALID_INPUT)
    problems = unmet(wanted, _installed)
    if problems:
        remedy = f"pip install --upgrade 'frazil[{EXTRA}]'"
        return Check.failed("python", f"{found}: {', '.join(problems)}", remedy, exit=Exit.INVALID_INPUT)
    return Check.ok("python", f"{found}, packages as required")


def unmet(requirements: Iterable[str], installed: Callable[[str], str | None]) -> list[str]:
    """Return what is wrong with the packages that these requirements of the wheel name, without those of other extras."""
    problems = []
    for wanted in map(Requirement, requirements):
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": EXTRA}):
            continue
        found = installed(wanted.name)
        if found is None:
            problems.append(f"{wanted.name} is not installed")
        elif not wanted.specifier.contains(found, prereleases=True):
            problems.append(f"{wanted.name} is {found}, not {wanted.specifier}")
    return problems


def java_check() -> Check:
    """Check the Java that Spark is started with. Raises `JavaUnsuitable`."""
    program = java()
    first = (version_text(program).splitlines() or [""])[0]
    named = re.search(r'"(?:1\.)?(\d+)([^"]*)"', first)
    version = f"{named[1]}{named[2]}" if named else first
    home = os.environ.get("JAVA_HOME")
    found = f"{version}, {f'JAVA_HOME={home}' if home else program}"
    if named and int(named[1]) not in TESTED_JAVA:
        return Check.warning("java", found, f"Spark is tested with Java {' and '.join(map(str, TESTED_JAVA))}")
    return Check.ok("java", found)


def jars_check(*, with_s3: bool) -> Check:
    """Check Spark's jars by their hashes. Jars that are missing from the cache are a warning: the first run fetches them."""
    state = jar_state("spark", lambda name: with_s3 or "aws-bundle" not in name)
    where = f"{FOLDER}={state.folder}" if state.is_given else str(state.folder).replace(str(Path.home()), "~", 1)
    if state.different:
        names = ", ".join(state.different[:3])
        remedy = (
            "Copy them again: `frazil local jars --out FOLDER`" if state.is_given else "Delete them; a run fetches them"
        )
        error = JarMismatch(f"not the locked content: {names}", where=where, do=remedy)
        return Check.of_error("jars", error)
    if state.missing and state.is_given:
        what = f"{len(state.missing)} of {state.count} are not in the folder: {', '.join(state.missing[:3])}"
        remedy = "On a machine with a network, run `frazil local jars --out FOLDER`"
        return Check.of_error("jars", JarsUnavailable(what, where=where, do=remedy))
    if state.missing:
        source = os.environ.get(MIRROR) or "Maven Central"
        found = f"{len(state.missing)} of {state.count} are not in {where}"
        return Check.warning("jars", found, f"The first run fetches them from {source}; {MIRROR} names a mirror")
    return Check.ok("jars", f"{state.count} with the locked hashes in {where}")


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def secret_steps(environment: Environment, pipelines: Sequence[Pipeline], secrets: Secrets) -> list[Step]:
    """Return one step for each secret of an environment, and of the shapes of pipelines."""
    parts = (environment, *(pipeline.shape for pipeline in pipelines))
    named = {reference(secret): secret for secret in secrets_in(parts)}
    return [Step(name=f"secret {name}", work=partial(_read, name, one, secrets)) for name, one in named.items()]


def secret_names(part: object) -> tuple[str, ...]:
    """Return the names of the checks of the secrets below a part of an environment."""
    return tuple(dict.fromkeys(f"secret {reference(secret)}" for secret in secrets_in(part)))


def _read(name: str, secret: Secret, secrets: Secrets) -> Check:
    secrets.read(secret)
    return Check.ok(f"secret {name}", "it can be read")


CLOCK = "clock"
NOTICED_SECONDS = 5.0
"""From this skew on, freshness and lag are wrong by a figure that matters."""
REFUSED_SECONDS = 300.0
"""From this skew on, AWS refuses signed requests (S3 from 900 s on)."""


def of_skew(source: str, skew: float) -> Check:
    """Return the check of a skew, in seconds."""
    found = f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the {source}"
    if abs(skew) >= REFUSED_SECONDS:
        return Check.failed(CLOCK, found, "Set the clock, for example with chrony; AWS refuses requests of this skew")
    if abs(skew) >= NOTICED_SECONDS:
        return Check.warning(CLOCK, found, "Set the clock, for example with chrony; freshness and lag depend on it")
    return Check.ok(CLOCK, f"within {max(round(abs(skew)), 1)} s of the {source}")


def sources(environment: Environment) -> Iterator[tuple[str, str, str | None]]:
    """Yield the services that may say their time, the first one first: name, address, file of authorities."""
    catalog, store = environment.catalog, environment.object_store
    on_files = isinstance(catalog, LocalCatalog) and not catalog.warehouse.startswith("s3:")
    if store is not None and store.endpoint:
        yield "object store", store.endpoint, None
    elif not on_files:
        region = (store and store.region) or (
            catalog.region if isinstance(catalog, GlueCatalog | RestCatalog) else None
        )
        yield "object store", f"https://s3.{region or 'us-east-1'}.amazonaws.com", None
    if isinstance(catalog, RestCatalog):
        yield "catalog", catalog.uri, None
    if environment.registry is not None:
        yield "registry", environment.registry.url, environment.registry.ca


def clock(environment: Environment, now: Callable[[], float], seconds: float) -> Check:
    """Compare our clock with that of the first service that says its time; `now` is in seconds since 1970."""
    for source, url, ca in sources(environment):
        skew = clock_skew(url, ca, seconds, now)
        if skew is not None:
            return of_skew(source, skew)
    return Check.skipped(CLOCK, "no service of this environment says what time it is")
