"""Submission: what a job run asks of Spark, read as EMR Serverless reads it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frazil.errors import InvalidInput

_FLAGS = {
    "--name": "spark.app.name",
    "--jars": "spark.jars",
    "--py-files": "spark.submit.pyFiles",
    "--files": "spark.files",
    "--archives": "spark.archives",
    "--driver-memory": "spark.driver.memory",
    "--driver-cores": "spark.driver.cores",
    "--executor-memory": "spark.executor.memory",
    "--executor-cores": "spark.executor.cores",
    "--num-executors": "spark.executor.instances",
}
"""Arguments of spark-submit that are settings by another name."""

_SERVICE = "spark.emr-serverless."
_DRIVER_ENVIRONMENT = f"{_SERVICE}driverEnv."
_FETCHED = ("spark.submit.pyFiles", "spark.jars", "spark.files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A Spark job as it was submitted: everything still where it was uploaded."""

    entry_point: str
    arguments: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark's settings, those for the service itself left out."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the driver's environment has beside the service's own (`spark.emr-serverless.driverEnv.…`)."""

    @property
    def files(self) -> tuple[str, ...]:
        """Where everything is that is fetched as it is: the entry point, packages, jars, files."""
        named = (uri for key in _FETCHED for uri in _listed(self.settings.get(key)))
        return tuple(dict.fromkeys((self.entry_point, *named)))

    @property
    def archives(self) -> tuple[tuple[str, str], ...]:
        """Each archive's place, and the folder it is unpacked as."""
        parted = (uri.partition("#") for uri in _listed(self.settings.get("spark.archives")))
        return tuple((uri, folder or uri.rpartition("/")[2]) for uri, _, folder in parted)

    def here(self, folder: str) -> dict[str, str]:
        """The settings with everything that was fetched by its path in a folder.

        Archives and files are in the driver's working folder, where the driver looks for them; Spark need not fetch them.
        """
        settings = {key: value for key, value in self.settings.items() if key not in ("spark.archives", "spark.files")}
        for key in _FETCHED:
            if key in settings:
                settings[key] = ",".join(f"{folder}/{name_of(uri)}" for uri in _listed(settings[key]))
        return settings


def submission(job_driver: Mapping[str, Any], overrides: Mapping[str, Any]) -> Submission:
    """What a run's `jobDriver` and `configurationOverrides` ask for. Raises `InvalidInput` for what cannot be run here."""
    submit = job_driver.get("sparkSubmit")
    if submit is None:
        raise InvalidInput("it has no sparkSubmit", where="jobDriver", do="Only Spark jobs are run here")
    settings = dict(_defaults(overrides))
    settings |= _parameters(submit.get("sparkSubmitParameters") or "")
    for uri in (submit["entryPoint"], *(part for key in _FETCHED for part in _listed(settings.get(key)))):
        if not uri.startswith("s3://"):
            raise InvalidInput(f"{uri} is not on S3", where="sparkSubmit", do="Upload it, and name its s3:// place")
    return Submission(
        entry_point=submit["entryPoint"],
        arguments=tuple(submit.get("entryPointArguments") or ()),
        settings={key: value for key, value in settings.items() if not key.startswith(_SERVICE)},
        variables={
            key.removeprefix(_DRIVER_ENVIRONMENT): value
            for key, value in settings.items()
            if key.startswith(_DRIVER_ENVIRONMENT)
        },
    )


def name_of(uri: str) -> str:
    """The name by which a run sees what was fetched from a place."""
    return uri.rpartition("/")[2]


def _defaults(overrides: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in overrides.get("applicationConfiguration") or ():
        if one["classification"] == "spark-defaults":
            yield from (one.get("properties") or {}).items()


def _parameters(text: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    words = iter(shlex.split(text))
    for word in words:
        flag, equals, value = word.partition("=")
        value = value if equals else next(words, "")
        if flag in ("--conf", "-c"):
            key, _, value = value.partition("=")
        elif flag in _FLAGS:
            key = _FLAGS[flag]
        else:
            raise InvalidInput(f"{word} is not understood", where="sparkSubmitParameters", do="Write it as --conf")
        settings[key] = value
    return settings


def _listed(value: str | None) -> Sequence[str]:
    return [part.strip() for part in (value or "").split(",") if part.strip()]
