"""The entry point of synthesis, which `cdktf.json` runs. By hand: `python -m stacks.workflow.app`. It needs no credentials.

| variable | meaning |
| --- | --- |
| `FRAZIL_ENVIRONMENTS` | required: the environments to synthesise, joined by commas |
| `FRAZIL_PIPELINES` | required unless in `frazil.toml`: a Python file with `pipelines`, and `topics` and `retired` if any |
| `FRAZIL_RELEASE` | required: the manifest of the release that should run; `none` if nothing should run, as in a first deployment |
| `FRAZIL_DEPLOYED` | the folder of the files that list what holds data; `deployed` if omitted |
| `FRAZIL_DESTROY_DATA` | the second key: the one environment whose data may be destroyed |
| `FRAZIL_KEY_STEP` | the step of a rotation of keys, which `frazil deploy rotate-keys` sets |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.errors import FrazilError, InvalidInput
from frazil.project.declaration_file import checked, members, ran
from frazil.project.project_file import stated_pipelines
from frazil.release.manifest import Release, parse_manifest
from frazil.release.signature import in_folder, verify
from infra.confluent.managed_topic import ManagedTopic
from infra.tf import App
from stacks.spec.deployments import DEPLOYMENTS, NO_RELEASE, Deployment, overlapping
from stacks.spec.reader_keys import wanted_step
from stacks.stacks.compose import Stacks, compose
from stacks.workflow.deployed import Deployed, Retired, file_of, forgotten, held, read, write


def deployed_before(deployment: Deployment, file: Path, *, is_first: bool) -> Deployed:
    """Read the file of deployed objects. A first deployment without a file has an empty one.

    Raises `InvalidInput` if the file is missing and `is_first` is false.
    """
    found = read(file, deployment.name)
    if found is None and not is_first and not deployment.is_local:
        raise InvalidInput(
            f"the file is missing, so the data of {deployment.name} are not protected from a lost declaration",
            where=str(file),
            do="Restore the committed file. FRAZIL_RELEASE=none creates the first one (docs/deploy.md)",
        )
    return found or Deployed(environment=deployment.name)


def guard(stacks: Stacks, before: Deployed, retired: Sequence[Retired], *, is_open: bool) -> Deployed:
    """Let Terraform forget retired objects and documents in use, and return the file's new content.

    `is_open`: both keys of `Protection` are turned. Raises `InvalidDeclaration` as `Deployed.after` does.
    """
    for stack in stacks.every:
        stack.prepare_stack()  # resolves references between stacks
    content: dict[str, Any] = {stack.node.id: stack.to_terraform() for stack in stacks.every}
    after = before.after(held(content), _documents(content), retired, is_open=is_open)
    for stack in stacks.every:
        blocks = forgotten(after, stack.node.id, content[stack.node.id].get("resource", {}))
        if blocks:
            stack.add_override("removed", blocks)
    return after


def deployed_groups(before: Deployed) -> set[str]:
    """Return the groups whose documents are listed: their stacks may be deployed."""
    prefix = f"{before.environment}-ingestion-"
    stacks = {each.partition("/")[0] for each in before.documents}
    return {stack.removeprefix(prefix) for stack in stacks if stack.startswith(prefix)}


def _documents(content: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the declared documents. A run may read them until it ends."""
    return [
        f"{stack}/aws_s3_object.{address}"
        for stack, each in content.items()
        for address, arguments in each.get("resource", {}).get("aws_s3_object", {}).items()
        if arguments["key"].startswith("documents/")
    ]


_REQUIRED = {
    "FRAZIL_ENVIRONMENTS": f"the environments to deploy, of {', '.join(DEPLOYMENTS)}",
    "FRAZIL_PIPELINES": "the Python file that declares your pipelines",
    "FRAZIL_RELEASE": f"the manifest of the release to run; {NO_RELEASE} for a first deployment",
}


def main(settings: Mapping[str, str], deployments: Mapping[str, Deployment] = DEPLOYMENTS) -> int:
    """Synthesise, and write the file of the objects that hold data.

    Prints every problem on stderr and returns 2 if a variable is missing or a declaration cannot be deployed.
    """
    if (stated := stated_pipelines()) is not None:
        settings = {"FRAZIL_PIPELINES": str(stated), **settings}
    missing = [name for name in _REQUIRED if not settings.get(name, "").strip()]
    if missing:
        wanted = "; ".join(f"{name}: {_REQUIRED[name]}" for name in missing)
        print(f"error: {', '.join(missing)} must be set. {wanted}", file=sys.stderr)
        return 2
    chosen = [name.strip() for name in settings["FRAZIL_ENVIRONMENTS"].split(",")]
    unknown = [name for name in chosen if name not in deployments]
    if unknown:
        one_of = ", ".join(deployments)
        print(f"error: the environment {', '.join(unknown)} does not exist. Name one of {one_of}", file=sys.stderr)
        return 2
    try:
        if problems := list(overlapping(deployments.values())):
            raise InvalidDeclaration(problems)
        file = Path(settings["FRAZIL_PIPELINES"])
        declared = _declared(file)
        app = App()
        files = dict(
            _guarded(app, deployments[name], declared, file.parent, settings) for name in dict.fromkeys(chosen)
        )
        app.synth()
        for deployed_file, deployed in files.items():
            write(deployed_file, deployed)
    except (FrazilError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _guarded(
    app: App, deployment: Deployment, declared: Mapping[str, Any], folder: Path, settings: Mapping[str, str]
) -> tuple[Path, Deployed]:
    """Compose an environment. Return the path of its file of deployed objects and the file's new content."""
    release = _release(settings["FRAZIL_RELEASE"].strip(), deployment.access.trusted_keys)
    file = file_of(deployment, settings.get("FRAZIL_DEPLOYED", ""))
    before = deployed_before(deployment, file, is_first=release is None)
    before = replace(before, key_step=wanted_step(settings, before.key_step))
    is_named = settings.get("FRAZIL_DESTROY_DATA") == deployment.name
    stacks = compose(
        app,
        deployment,
        declared["pipelines"],
        declared["topics"],
        text_of=lambda schema: (folder / schema).read_text("utf-8"),
        patterns=declared["patterns"],
        release=release,
        is_named_for_destruction=is_named,
        former_groups=deployed_groups(before),
        key_step=before.key_step or 0,
    )
    is_open = deployment.is_disposable and is_named
    return file, guard(stacks, before, declared["retired"], is_open=is_open)


def _declared(file: Path) -> dict[str, Any]:
    names = ran(file)
    if "pipelines" not in names.values:
        raise InvalidInput("`pipelines` is missing", where=str(file), do="Write pipelines = [Pipeline(…), …]")
    of_file = checked(names)
    if of_file.types:
        what = f"the types {of_file.types[0].match} of {of_file.types[0].topic} have no deployment yet"
        raise InvalidInput(what, where=str(file), do="Name each type in routes(to={…}) with its table")
    return {
        "pipelines": of_file.pipelines,
        "patterns": of_file.patterns,
        "topics": members(names, "topics", ManagedTopic, do='Write topics = [ManagedTopic("orders"), …]'),
        "retired": members(names, "retired", Retired, do="Write retired = [Retired(…), …]"),
    }


def _release(manifest: str, trusted: Sequence[str]) -> Release | None:
    """Read the release that should run: schedules start its runs, so a trusted key must have signed it."""
    if manifest == NO_RELEASE:
        return None
    file = Path(manifest)
    release = parse_manifest(file.read_bytes())
    verify(release, trusted, in_folder(file.parent))
    return release


if __name__ == "__main__":
    sys.exit(main(os.environ))
