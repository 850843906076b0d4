"""`frazil release`: what job runs are made of."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from frazil.cli import aws
from frazil.cli.built_for import BuiltFor, built_for, declared
from frazil.cli.console import err, number, out, show_json, table
from frazil.cli.options import AsJson, EnvironmentName
from frazil.clients.secrets import Secrets
from frazil.declaration.to_json import to_json
from frazil.errors import InvalidInput
from frazil.project import environments
from frazil.release.emr_labels import NEWEST, label
from frazil.release.manifest import Architecture, Release, Role

app = typer.Typer(help="Build what job runs are made of, and upload it.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    pass


@app.command("build")
def build(
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write.")] = Path("dist/release"),
    for_environment: Annotated[
        str | None,
        typer.Option("--for", metavar="ENV", help="Take label and processors of this environment."),
    ] = None,
    label_name: Annotated[
        str | None, typer.Option("--label", metavar="LABEL", help="The EMR release it is for.", show_default=NEWEST)
    ] = None,
    architecture: Annotated[
        Architecture | None,
        typer.Option("--architecture", help="The processors it is for.", case_sensitive=False, show_default="X86_64"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Build a release from this checkout: package, environment, jars, entry points, manifest, bill of materials.

    For example: frazil release build --for dev

    Two builds of one commit are the same bytes. Exit codes: 0 built; 1 something is missing or not what is locked;
    2 no such environment; 3 the jars cannot be fetched.
    """
    chosen = BuiltFor(label_name or NEWEST, architecture or Architecture.X86_64)
    if for_environment is not None:
        if label_name is not None or architecture is not None:
            raise typer.BadParameter("--for gives both. Leave out --label and --architecture, or --for")
        chosen = built_for(for_environment, Path.cwd())
    release = built(Path.cwd(), folder, label_name=chosen.label, architecture=chosen.architecture)
    if release.is_dirty:
        err().print("The checkout has changes that are in no commit; the manifest says so.", style="yellow")
    if as_json:
        show_json({"folder": str(folder), "digest": release.digest, "release": to_json(release)})
    else:
        _tell(release, folder)


@app.command("upload")
def upload(
    context: typer.Context,
    env: EnvironmentName,
    folder: Annotated[Path, typer.Option("--from", metavar="DIR", help="The release's folder.")] = Path("dist/release"),
    as_json: AsJson = False,
) -> None:
    """Put a release into an environment's artifact bucket. What is there is never overwritten.

    For example: frazil release upload dev

    In a checkout, the release must have the label and the processors that stacks/deployments.py declares.
    Exit codes: 0 it is there, now or since before; 1 a file is not what the manifest says; 2 it is built for another
    label or for other processors; 3 S3 refuses or is away.
    """
    from frazil.release.upload import built_release, upload_release

    secrets: Secrets = context.find_root().obj
    place = environments.environment(env)
    store = aws.artifact_store(place, secrets)
    if wanted := declared(place.name, Path.cwd()):
        _refuse_other(built_release(folder), place.name, wanted)
    release, uploaded = upload_release(folder, store)
    new = sum(one.is_new for one in uploaded)
    if as_json:
        show_json({"release": release.key, "new": new, "keys": [one.key for one in uploaded]})
    else:
        out().print(f"{new} of {len(uploaded)} files were new", markup=False)
        out().print(f"release {release.key}", markup=False)


def _refuse_other(release: Release, name: str, wanted: BuiltFor) -> None:
    """Raise `InvalidInput` if the release is not built for the environment."""
    found = BuiltFor(release.label, release.architecture)
    if found != wanted:
        what = (
            f"it is for {found.label} and {found.architecture}, and {name} runs {wanted.label} on {wanted.architecture}"
        )
        raise InvalidInput(what, where=f"release {release.version}", do=f"Run frazil release build --for {name}")


def built(root: Path, folder: Path, *, label_name: str, architecture: Architecture) -> Release:
    """Build it, with wheels and jars from the user's cache."""
    from frazil.local.toolchain.jars import cache_folder
    from frazil.release.build import build as build_release
    from frazil.release.build import own_wheel
    from frazil.release.git import Checkout
    from frazil.release.packages import download

    chosen, checkout = label(label_name), Checkout.at(root)
    wheels = cache_folder() / "wheels" / f"{architecture.lower()}-{chosen.python}"
    lock = root / "jobs" / "requirements.lock"
    with tempfile.TemporaryDirectory(prefix="frazil-") as temporary:
        return build_release(
            checkout,
            folder,
            own_wheel=own_wheel(checkout, Path(temporary)),
            packages=download(lock, wheels, architecture, python=chosen.python),
            jars=released_jars(root / "jobs" / "jars.lock"),
            label=chosen,
            architecture=architecture,
        )


def released_jars(lock: Path) -> list[Any]:
    """The locked jars of a Spark session, but for the local catalog's database."""
    from frazil.local.toolchain.jars import jars, locked
    from frazil.release.build import Jar
    from frazil.release.sbom import Kind, Part

    wanted = [artifact for artifact in locked(lock) if "spark" in artifact.purposes]
    return [
        Jar(
            file=file,
            part=Part(
                kind=Kind.MAVEN,
                group=artifact.group,
                name=artifact.name,
                version=artifact.version,
                sha256=artifact.sha256,
                licence=artifact.licence,
            ),
        )
        for artifact, file in zip(wanted, jars("spark", lock=lock), strict=True)
        if artifact.name != "sqlite-jdbc"
    ]


def _tell(release: Release, folder: Path) -> None:
    shown = table("file", "what", "kB", "sha256", right=("kB",))
    for file in sorted(release.files, key=lambda f: (list(Role).index(f.role), f.name)):
        shown.add_row(file.name, file.role, number(file.size_bytes // 1000), file.sha256[:16])
    out().print(shown)
    place = f"{release.label}, {release.architecture}"
    out().print(f"release {release.version} for {place}, {release.digest[:16]}, in {folder}", markup=False)
