"""`frazil release`: build, sign, upload and check releases."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from frazil.cli.console import err, number, out, say, show_json, table
from frazil.cli.deploy.plan import NO_RELEASE
from frazil.cli.deploy.program import description, required_description, required_program
from frazil.cli.jobs import aws
from frazil.cli.options import (
    ENV,
    AsJson,
    EnvironmentName,
    EnvironmentOption,
    argument,
    command_secrets,
    environment_name,
    flag,
)
from frazil.declaration import Secret
from frazil.declaration.documents.to_json import to_json
from frazil.errors import InvalidInput, ReleaseIncomplete
from frazil.project import environments
from frazil.release.emr_labels import NEWEST, label
from frazil.release.manifest import MANIFEST, Architecture, Release, Role


def build(
    folder: Annotated[Path, flag("--out", "Folder to write.", "DIR")] = Path("dist/release"),
    for_environment: Annotated[
        str | None, flag(f"--for {ENV}", "Environment that gives label and processors.", "ENV")
    ] = None,
    label_name: Annotated[
        str | None, flag("--label", "EMR release to build for.", "LABEL", show_default=NEWEST)
    ] = None,
    architecture: Annotated[
        Architecture | None,
        flag("--architecture", "Processors to build for.", case_sensitive=False, show_default="x86_64"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Build a release from checkout or installed wheel.

    For example: frazil release build --for dev

    Writes package, environment, jars, entry points, manifest, bill of materials.
    Builds of one commit or wheel are identical.

    Exit codes: 0 built; 1 a part is missing or differs from the lock; 2 no such environment; 3 the jars cannot
    be fetched
    """
    if for_environment is not None:
        if label_name is not None or architecture is not None:
            raise typer.BadParameter("--for gives both. Leave out --label and --architecture, or --for")
        described = required_description(for_environment, Path.cwd())
        label_name, architecture = described["label"], Architecture(described["architecture"])
    wanted = architecture or Architecture.X86_64
    release = built(Path.cwd(), folder, label_name=label_name or NEWEST, architecture=wanted)
    if release.is_dirty:
        err().print("The checkout has changes that are in no commit; the manifest says so.", style="yellow")
    if as_json:
        show_json({"folder": str(folder), "digest": release.digest, "release": to_json(release)})
    else:
        _print_result(release, folder)


def upload(
    env: EnvironmentName = None,
    option: EnvironmentOption = None,
    folder: Annotated[Path, flag("--from", "Folder of the release.", "DIR")] = Path("dist/release"),
    as_json: AsJson = False,
) -> None:
    """Upload a release to an environment's artifact bucket.

    For example: frazil release upload dev

    Existing objects are never overwritten.
    Label and processors must match the declared deployment.
    Verifies the signature by the trusted keys.

    Exit codes: 0 uploaded, now or earlier; 1 a file differs, or no trusted signature exists; 2 built for
    another label or other processors; 3 S3 is unavailable
    """
    from frazil.release.upload import built_release, upload_release

    name, secrets = environment_name(env, option), command_secrets()
    found = None if environments.is_known(name) else description(name, Path.cwd())
    if found is not None:  # in a workflow, no document was fetched yet
        store, trusted, named = aws.declared_artifact_store(found), found["trusted_keys"], name
    else:
        place = environments.environment(name)
        store, trusted, named = aws.artifact_store(place, secrets), place.trusted_keys or (), place.name
    if wanted := found or description(named, Path.cwd()):
        refuse_other(built_release(folder), named, wanted)
    release, uploaded = upload_release(folder, store, trusted=trusted)
    new = sum(uploaded.values())
    if as_json:
        show_json({"release": release.key, "new": new, "keys": list(uploaded)})
    else:
        say(f"{new} of {len(uploaded)} files were new")
        say(f"release {release.key}")


def sign(
    folder: Annotated[Path, flag("--from", "Folder of the release.", "DIR")] = Path("dist/release"),
    for_environment: Annotated[str | None, flag(f"--for {ENV}", "Environment that must trust the key.", "ENV")] = None,
    key_file: Annotated[Path | None, flag("--key-file", "Ed25519 private key, as PEM.", "FILE")] = None,
    key_secret: Annotated[str | None, flag("--key-secret", "The same, in Secrets Manager.", "NAME")] = None,
    as_json: AsJson = False,
) -> None:
    """Sign a built release.

    For example: frazil release sign --key-file release.pem

    Writes the signature next to the manifest.
    Prints the public key, for access.trusted_keys of deployments.

    Exit codes: 0 signed; 1 a file differs from the manifest; 2 no Ed25519 key, or one that ENV does not trust;
    3 the secret cannot be read
    """
    from frazil.release.signature import key_id, signature_name
    from frazil.release.signature import sign as sign_release
    from frazil.release.upload import verified_release

    if (key_file is None) == (key_secret is None):
        raise typer.BadParameter("give one of --key-file and --key-secret")
    secrets = command_secrets()
    key = secrets.read(Secret(file=str(key_file)) if key_file else Secret(secretsmanager=key_secret))
    public, content = sign_release(verified_release(folder), key.encode())
    if for_environment and public not in (environments.environment(for_environment).trusted_keys or ()):
        what, do = f"it does not trust the key {public}", "Add the key to trusted_keys, and deploy"
        raise InvalidInput(what, where=f"environment {for_environment}", do=do)
    (folder / signature_name(public)).write_bytes(content)
    if as_json:
        show_json({"key": public, "key_id": key_id(public), "file": str(folder / signature_name(public))})
    else:
        say(f"signed with the key {public}")


def refuse_other(release: Release, name: str, declared: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` if the release is not built for a declared environment."""
    label, architecture = declared["label"], declared["architecture"]
    if (release.label, release.architecture) != (label, architecture):
        what = f"it is for {release.label} and {release.architecture}, and {name} runs {label} on {architecture}"
        raise InvalidInput(what, where=f"release {release.version}", do=f"Run frazil release build --for {name}")


def release_of(file: Path, *, do: str) -> Release:
    """Return the release of a manifest. Raises `InvalidInput`, with what to do, if the file is not one."""
    from frazil.release.upload import built_release

    if file.name != MANIFEST or not file.is_file():
        raise InvalidInput("the file is not the manifest of a release", where=str(file), do=do)
    return built_release(file.parent)


def built(root: Path, folder: Path, *, label_name: str, architecture: Architecture) -> Release:
    """Build it, with wheels and jars from the user's cache."""
    from frazil.local.toolchain.jars import LOCK_NAME, cache_folder, lock_file
    from frazil.release.build import build as build_release
    from frazil.release.build import own_wheel
    from frazil.release.installed import Installed, source_at
    from frazil.release.packages import download

    chosen, source = label(label_name), source_at(root)
    wheels = cache_folder() / "wheels" / f"{architecture.lower()}-{chosen.python}"
    jars_lock = lock_file() if isinstance(source, Installed) else source.inputs / LOCK_NAME
    with tempfile.TemporaryDirectory(prefix="frazil-") as temporary:
        return build_release(
            source,
            folder,
            own_wheel=own_wheel(source, Path(temporary)),
            packages=download(source.inputs / "requirements.lock", wheels, architecture, python=chosen.python),
            jars=released_jars(jars_lock),
            label=chosen,
            architecture=architecture,
        )


def released_jars(lock: Path) -> list[Any]:
    """Return the locked jars of a Spark session, but for the local catalog's database."""
    from frazil.local.toolchain.jars import jars, locked
    from frazil.release.sbom import Kind, Part

    wanted = [artifact for artifact in locked(lock) if "spark" in artifact.purposes]
    return [
        (
            file,
            Part(
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


def _print_result(release: Release, folder: Path) -> None:
    shown = table("file", "what", "kB", "sha256", right=("kB",))
    for file in sorted(release.files, key=lambda f: (list(Role).index(f.role), f.name)):
        shown.add_row(file.name, file.role, number(file.size_bytes // 1000), file.sha256[:16])
    out().print(shown)
    place = f"{release.label}, {release.architecture}"
    say(f"release {release.version} for {place}, {release.digest[:16]}, in {folder}")


SHOWN = 16
"""Digits of the digest in the name of a stored release."""


def check(
    envs: Annotated[list[str] | None, argument("ENV...", "Declared deployments.")] = None,
    option: Annotated[str | None, flag(ENV, "Same as one ENV.", "NAME")] = None,
    folder: Annotated[Path | None, flag("--from", "Folder of the release; checks its files.", "DIR")] = None,
    digest: Annotated[str, flag("--digest", "Digest that it must have.", "SHA256")] = "",
    as_json: AsJson = False,
) -> None:
    """Check the release that deployments declare.

    For example: frazil release check dev staging prod

    All deployments must declare the same one.
    Label, processors and signature must fit each.
    Prints digest, and name of a stored release.

    Exit codes: 0 one release for all, or none; 1 a file, the digest or the signature differs; 2 several
    releases, or another label or processors
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
    paths = {name: each["release"] for name, each in described.items()}
    if len(set(paths.values())) > 1:
        what = "; ".join(f"{name} declares {path}" for name, path in paths.items())
        raise InvalidInput(f"they run several releases: {what}", do="Declare one release for all of them")
    (path,) = set(paths.values())
    if path == NO_RELEASE:
        return None
    release = release_of(Path(root, path), do="Commit the manifest of a release")
    for name, each in described.items():
        refuse_other(release, name, each)
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
    say(f"{', '.join(names)}: {what}")
