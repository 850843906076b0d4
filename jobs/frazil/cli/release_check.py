"""`frazil release check`: check that several environments run one release, and that its files are those of its manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from frazil.cli.built_for import BuiltFor, required_description
from frazil.cli.console import out, show_json
from frazil.cli.deployment_program import required_program
from frazil.cli.options import FLAGS, AsJson
from frazil.cli.release import refuse_other
from frazil.cli.review import NO_RELEASE
from frazil.errors import InvalidInput, ReleaseIncomplete
from frazil.release.manifest import MANIFEST, Architecture, Release

SHOWN = 16
"""Digits of the digest in the name of a stored release."""


def check(
    envs: Annotated[list[str] | None, typer.Argument(metavar="ENV...", help="Declared deployments.")] = None,
    option: Annotated[str | None, typer.Option(*FLAGS, metavar="NAME", help="Same as one ENV.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="Folder of the release; checks its files.")
    ] = None,
    digest: Annotated[str, typer.Option("--digest", metavar="SHA256", help="Digest that it must have.")] = "",
    as_json: AsJson = False,
) -> None:
    """Check the release that deployments declare.

    For example: frazil release check dev staging prod

    \b
    All deployments must declare the same one.
    Label, processors and signature must fit each.
    Prints digest, and name of a stored release.

    \b
    Exit codes:
      0 one release for all, or none
      1 a file, the digest or the signature differs
      2 several releases, or another label or processors
    """
    names = list(dict.fromkeys([*(envs or ()), *([option] if option else [])]))
    if not names:
        raise InvalidInput("no environment is named", do="Name it: `frazil release check ENV`")
    root = required_program("describe").root
    described = {name: required_description(name, root) for name in names}
    release = _declared(described, root)
    if release is None:
        if digest or folder is not None:
            do = "Name the release in FRAZIL_RELEASE or infra_app.py, as where its digest comes from"
            raise ReleaseIncomplete("a release was given, and none is declared", where=", ".join(names), do=do)
        _show(None, names, as_json=as_json)
        return
    if digest and release.digest != digest:
        raise ReleaseIncomplete(f"its digest is {release.digest}, not {digest}", where=f"release {release.version}")
    if folder is not None:
        _check_files(folder, release, described)
    _show(release, names, as_json=as_json)


def _declared(described: dict[str, dict[str, Any]], root: Path) -> Release | None:
    """Return the release that all environments declare; None if they declare none. Raises `InvalidInput` for several."""
    from frazil.release.upload import built_release

    paths = {name: each["release"] for name, each in described.items()}
    if len(set(paths.values())) > 1:
        what = "; ".join(f"{name} declares {path}" for name, path in paths.items())
        raise InvalidInput(f"they run several releases: {what}", do="Declare one release for all of them")
    (path,) = set(paths.values())
    if path == NO_RELEASE:
        return None
    manifest = Path(root, path)
    if manifest.name != MANIFEST or not manifest.is_file():
        raise InvalidInput("it is no manifest of a release", where=str(manifest), do="Commit the manifest of a release")
    release = built_release(manifest.parent)
    for name, each in described.items():
        refuse_other(release, name, BuiltFor(each["label"], Architecture(each["architecture"])))
    return release


def _check_files(folder: Path, wanted: Release, described: dict[str, dict[str, Any]]) -> None:
    """Raise `ReleaseIncomplete` or `ReleaseUntrusted` if the folder does not hold the release that each environment may run."""
    from frazil.release.signature import in_folder, verify
    from frazil.release.upload import verified_release

    found = verified_release(folder)
    if found.digest != wanted.digest:
        what = f"it holds the release {found.digest}, and {wanted.digest} is declared"
        raise ReleaseIncomplete(what, where=str(folder), do="Fetch the files of the declared release")
    for each in described.values():
        verify(found, each["trusted_keys"], in_folder(folder))


def _show(release: Release | None, names: list[str], *, as_json: bool) -> None:
    stored = f"frazil-{release.digest[:SHOWN]}" if release else None
    if as_json:
        known = {"digest": release.digest, "version": release.version} if release else {"digest": None, "version": None}
        show_json({**known, "stored": stored, "environments": names})
        return
    what = f"release {release.version} ({release.digest}), stored as {stored}" if release else "no release is declared"
    out().print(f"{', '.join(names)}: {what}", markup=False, soft_wrap=True)
