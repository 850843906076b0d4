"""A new project: the files that `frazil init` writes, all of them or none."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path
from string import Template

from frazil.declaration.environment import ENVIRONMENT_NAME
from frazil.errors import InvalidInput
from frazil.project.project_file import DEPLOYMENTS, NAME, parse_project


class Cluster(StrEnum):
    """The Kafka cluster of a project.

    `local` is what `frazil local up` starts. `plain` is a broker without login. `confluent` is Confluent Cloud, with API keys.
    """

    LOCAL = "local"
    PLAIN = "plain"
    CONFLUENT = "confluent"


BOOTSTRAP = {
    Cluster.PLAIN: "localhost:9092",
    Cluster.CONFLUENT: "pkc-00000.eu-central-1.aws.confluent.cloud:9092",
}
"""The brokers of a project that names none: an example that people replace."""
REGISTRY = {Cluster.CONFLUENT: "https://psrc-00000.eu-central-1.aws.confluent.cloud"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProject:
    """The choices for a new project. `environment` is the name of the environment that its commands use."""

    cluster: Cluster
    environment: str
    bootstrap: str = ""
    registry: str = ""
    has_aws: bool = False
    """True if it deploys to AWS, as dev."""

    def files(self, version: str) -> dict[str, str]:
        """Return the files by their paths in the project; `version` is the one of Frazil that they install.

        Raises `InvalidInput` if the project file would have problems, such as a broker without a port.
        """
        found = {
            NAME: self._project_file(),
            "pipelines.py": _filled("pipelines.py"),
            "tests/test_pipelines.py": _filled("test_pipelines.py"),
            ".github/workflows/check.yml": _filled("check.yml", version=version),
            ".pre-commit-config.yaml": _filled("pre-commit-config.yaml"),
            ".gitignore": _filled("gitignore"),
        }
        if self.has_aws:
            for name in ("synthesise.yml", "review.yml", "deploy.yml", "deploy-environment.yml"):
                found[f".github/workflows/{name}"] = _filled(name, version=version)
            found["cdktf.json"] = _filled("cdktf.json")
            found[DEPLOYMENTS] = _filled(DEPLOYMENTS)
        if self.cluster is Cluster.LOCAL:
            found["orders.jsonl"] = _filled("orders.jsonl")
        return found

    def _project_file(self) -> str:
        if refusal := ENVIRONMENT_NAME.refusal(self.environment):
            raise InvalidInput(refusal.what, where="environment", do=refusal.do)
        parts = ["frazil.toml"]
        if self.cluster is not Cluster.LOCAL:
            parts.append("environment.toml")
        if self.cluster is Cluster.CONFLUENT:
            parts.append("confluent.toml")
        if self.registry:
            parts.append("registry.toml")
        if self.registry and self.cluster is Cluster.CONFLUENT:
            parts.append("registry_key.toml")
        # JSON's notation of text is TOML's, too.
        values = {"bootstrap": json.dumps(self.bootstrap), "registry": json.dumps(self.registry)}
        content = "".join(_filled(part, environment=self.environment, **values) for part in parts)
        parse_project(tomllib.loads(content), os.path.abspath)
        return content

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of secrets that its environment names."""
        kafka = ("KAFKA_API_KEY", "KAFKA_API_SECRET") if self.cluster is Cluster.CONFLUENT else ()
        return kafka + (("REGISTRY_API_KEY", "REGISTRY_API_SECRET") if kafka and self.registry else ())

    def next_commands(self, folder: Path) -> tuple[str, ...]:
        """Return what to run next, from the working folder."""
        into: tuple[str, ...] = () if folder == Path() else (f"cd {folder}",)
        land = ("frazil run", 'frazil query "select customer, sum(amount) from orders group by all"')
        deploy: tuple[str, ...] = ()
        if self.has_aws:
            into += ("pip install 'frazil[infra]'",)
            deploy = (f"$EDITOR {DEPLOYMENTS}", "frazil deploy plan dev --offline", "frazil deploy bootstrap dev")
            deploy += ("frazil deploy up dev --release none", "frazil deploy up dev")
        if self.cluster is Cluster.LOCAL:
            return (*into, "frazil local up", "frazil local produce orders orders.jsonl", *land, *deploy)
        return (*into, *(f"export {name}=…" for name in self.variables), "frazil doctor", *land, *deploy)


def _filled(name: str, **values: str) -> str:
    template = resources.files("frazil.project") / "templates" / f"{name}.template"
    return Template(template.read_text("utf-8")).substitute(values)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files into the folder, which is made if it does not exist.

    Raises `InvalidInput` with all files that exist already, or if a file cannot be written; nothing is written then.
    """
    existing = [name for name in files if os.path.lexists(folder / name)]
    if existing:
        names, verb = ", ".join(existing), "exists" if len(existing) == 1 else "exist"
        what, do = f"{names} {verb} already", "Move them away, or name another folder; nothing is written"
        raise InvalidInput(what, where=str(folder), do=do)
    written: list[Path] = []
    folders: list[Path] = []
    try:
        for name, content in files.items():
            file = folder / name
            for parent in reversed((file.parent, *file.parent.parents)):
                if not parent.exists():
                    parent.mkdir()
                    folders.append(parent)
            with file.open("x", encoding="utf-8") as opened:
                written.append(file)
                opened.write(content)
    except BaseException as error:  # also of Ctrl-C
        for file in written:
            file.unlink(missing_ok=True)
        for parent in reversed(folders):
            with suppress(OSError):  # another program has put a file there
                parent.rmdir()
        if isinstance(error, OSError):
            raise InvalidInput.unwritable(error.filename or folder, error) from error
        raise
