"""`frazil release`: what job runs are made of."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from frazil.cli.options import AsJson
from frazil.cli.screen import err, number, out, show_json, table
from frazil.control.labels import NEWEST, label
from frazil.control.release import Architecture, Release, Role
from frazil.declaration.writing import to_json

app = typer.Typer(help="Build what job runs are made of.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    pass


@app.command("build")
def build(
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write.")] = Path("dist/release"),
    label_name: Annotated[str, typer.Option("--label", metavar="LABEL", help="The EMR release it is for.")] = NEWEST,
    architecture: Annotated[
        Architecture, typer.Option("--architecture", help="The processors it is for.", case_sensitive=False)
    ] = Architecture.X86_64,
    as_json: AsJson = False,
) -> None:
    """Build a release from this checkout: package, environment, jars, entry points, manifest, bill of materials.

    For example: frazil release build --architecture ARM64

    Two builds of one commit are the same bytes. Exit codes: 0 built; 1 something is missing or not what is locked;
    3 the jars cannot be fetched.
    """
    release = built(Path.cwd(), folder, label_name=label_name, architecture=architecture)
    if release.is_dirty:
        err().print("The checkout has changes that are in no commit; the manifest says so.", style="yellow")
    if as_json:
        show_json({"folder": str(folder), "digest": release.digest, "release": to_json(release)})
    else:
        _tell(release, folder)


def built(root: Path, folder: Path, *, label_name: str, architecture: Architecture) -> Release:
    """Build it, with wheels and jars from the user's cache."""
    from frazil.control.build import build as build_release
    from frazil.control.build import own_wheel
    from frazil.control.checkout import Checkout
    from frazil.control.packages import download
    from frazil.local.jars import cache_folder

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
    from frazil.control.bill import Kind, Part
    from frazil.control.build import Jar
    from frazil.local.jars import jars, locked

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
