"""The parser of a job run's Spark submission, with the rules of EMR Serverless. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frazil.errors import InvalidInput

_SERVICE = "spark.emr-serverless."
_DRIVER_ENVIRONMENT = f"{_SERVICE}driverEnv."
_FETCHED = ("spark.submit.pyFiles", "spark.jars", "spark.files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A submitted Spark job. All its files have their uploaded addresses."""

    entry_point: str
    arguments: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark's settings, without those of the service."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """The driver's additional environment variables (`spark.emr-serverless.driverEnv.…`)."""

    @property
    def files(self) -> tuple[str, ...]:
        """The addresses of all files that are fetched unchanged: entry point, packages, jars, files."""
        named = (uri for key in _FETCHED for uri in _listed(self.settings.get(key)))
        return tuple(dict.fromkeys((self.entry_point, *named)))

    @property
    def archives(self) -> tuple[tuple[str, str], ...]:
        """The address of each archive, and the folder that it is unpacked to."""
        parted = (uri.partition("#") for uri in _listed(self.settings.get("spark.archives")))
        return tuple((uri, folder or uri.rpartition("/")[2]) for uri, _, folder in parted)

    def here(self, folder: str) -> dict[str, str]:
        """Return the settings with the local path of each fetched file.

        Archives and files are in the driver's working folder, where the driver expects them, so Spark does not fetch them.
        """
        settings = {key: value for key, value in self.settings.items() if key not in ("spark.archives", "spark.files")}
        for key in _FETCHED:
            if key in settings:
                settings[key] = ",".join(f"{folder}/{name_of(uri)}" for uri in _listed(settings[key]))
        return settings


def submission(job_driver: Mapping[str, Any]) -> Submission:
    """Parse a run's `jobDriver`. Raises `InvalidInput` if it cannot run here."""
    submit = job_driver.get("sparkSubmit")
    if submit is None:
        raise InvalidInput("sparkSubmit is missing", where="jobDriver", do="Submit a Spark job")
    settings = _parameters(submit.get("sparkSubmitParameters") or "")
    for uri in (submit["entryPoint"], *(part for key in _FETCHED for part in _listed(settings.get(key)))):
        if not uri.startswith("s3://"):
            raise InvalidInput(f"{uri} is not on S3", where="sparkSubmit", do="Upload it, and name its s3:// address")
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
    """Return the name of a fetched file in a run."""
    return uri.rpartition("/")[2]


def _parameters(text: str) -> dict[str, str]:
    words = shlex.split(text)
    if words[::2] != ["--conf"] * (len(words) // 2):
        raise InvalidInput("only --conf is supported", where="sparkSubmitParameters", do="Write it as --conf")
    return dict(word.split("=", 1) for word in words[1::2])


def _listed(value: str | None) -> Sequence[str]:
    return [part.strip() for part in (value or "").split(",") if part.strip()]
