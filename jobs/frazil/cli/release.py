"""`frazil release`: build and upload releases."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from frazil.cli import aws
from frazil.cli.built_for import BuiltFor, built_for, declared, description
from frazil.cli.console import err, number, out, show_json, table
from frazil.cli.options import FLAGS, AsJson, EnvironmentName, EnvironmentOption, environment_name
from frazil.clients.secrets import Secrets
from frazil.declaration import Secret
from frazil.declaration.documents.to_json import to_json
from frazil.errors import InvalidInput
from frazil.project import environments
from frazil.release.emr_labels import NEWEST, label
from frazil.release.manifest import Architecture, Release, Role


def build(
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write.")] = Path("dist/release"),
    for_environment: Annotated[
        str | None,
        typer.Option("--for", *FLAGS, metavar="ENV", help="Environment that gives label and processors."),
    ] = None,
    label_name: Annotated[
        str | None, typer.Option("--label", metavar="LABEL", help="EMR release to build for.", show_default=NEWEST)
    ] = None,
    architecture: Annotated[
        Architecture | None,
        typer.Option("--architecture", help="Processors to build for.", case_sensitive=False, show_default="X86_64"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Build a release from checkout or installed wheel.

    For example: frazil release build --for dev

    \b
    Writes package, environment, jars, entry points, manifest, bill of materials.
    Builds of one commit or wheel are identical.

    \b
    Exit codes:
      0 built
      1 a part is missing or differs from the lock
      2 no such environment
      3 the jars cannot be fetched
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
        _print_result(release, folder)


def upload(
    context: typer.Context,
    env: EnvironmentName = None,
    option: EnvironmentOption = None,
    folder: Annotated[Path, typer.Option("--from", metavar="DIR", help="Folder of the release.")] = Path(
        "dist/release"
    ),
    as_json: AsJson = False,
) -> None:
    """Upload a release to an environment's artifact bucket.

    For example: frazil release upload dev

    \b
    Existing objects are never overwritten.
    Label and processors must match the declared deployment.
    Verifies the signature by the trusted keys.

    \b
    Exit codes:
      0 uploaded, now or earlier
      1 a file differs, or no trusted signature exists
      2 built for another label or other processors
      3 S3 is unavailable
    """
    from frazil.release.upload import built_release, upload_release

    name, secrets = environment_name(context, env, option), context.find_root().obj
    found = None if environments.is_known(name) else description(name, Path.cwd())
    if found is not None:  # in a workflow, no document was fetched yet
        store, trusted, named = aws.declared_artifact_store(found), found["trusted_keys"], name
    else:
        place = environments.environment(name)
        store, trusted, named = aws.artifact_store(place, secrets), place.trusted_keys or (), place.name
    if wanted := declared(named, Path.cwd()):
        refuse_other(built_release(folder), named, wanted)
    release, uploaded = upload_release(folder, store, trusted=trusted)
    new = sum(one.is_new for one in uploaded)
    if as_json:
        show_json({"release": release.key, "new": new, "keys": [one.key for one in uploaded]})
    else:
        out().print(f"{new} of {len(uploaded)} files were new", markup=False)
        out().print(f"release {release.key}", markup=False)


def sign(
    context: typer.Context,
    folder: Annotated[Path, typer.Option("--from", metavar="DIR", help="Folder of the release.")] = Path(
        "dist/release"
    ),
    for_environment: Annotated[
        str | None, typer.Option("--for", *FLAGS, metavar="ENV", help="Environment that must trust the key.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", metavar="FILE", help="Ed25519 private key, as PEM.")
    ] = None,
    key_secret: Annotated[
        str | None, typer.Option("--key-secret", metavar="NAME", help="The same, in Secrets Manager.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Sign a built release.

    For example: frazil release sign --key-file release.pem

    \b
    Writes the signature beside the manifest.
    Prints the public key, for trusted_keys of deployments.

    \b
    Exit codes:
      0 signed
      1 a file differs from the manifest
      2 no Ed25519 key, or one that ENV does not trust
      3 the secret cannot be read
    """
    from frazil.release.signature import key_id, signature_name
    from frazil.release.signature import sign as sign_release
    from frazil.release.upload import verified_release

    if (key_file is None) == (key_secret is None):
        raise typer.BadParameter("give one of --key-file and --key-secret")
    secrets: Secrets = context.find_root().obj
    key = secrets.read(Secret(file=str(key_file)) if key_file else Secret(secretsmanager=key_secret))
    public, content = sign_release(verified_release(folder), key.encode())
    if for_environment and public not in (environments.environment(for_environment).trusted_keys or ()):
        what, do = f"it does not trust the key {public}", "Add the key to trusted_keys, and deploy"
        raise InvalidInput(what, where=f"environment {for_environment}", do=do)
    (folder / signature_name(public)).write_bytes(content)
    if as_json:
        show_json({"key": public, "key_id": key_id(public), "file": str(folder / signature_name(public))})
    else:
        out().print(f"signed with the key {public}", markup=False)


def refuse_other(release: Release, name: str, wanted: BuiltFor) -> None:
    """Raise `InvalidInput` if the release is not built for the environment."""
    found = BuiltFor(release.label, release.architecture)
    if found != wanted:
        what = (
            f"it is for {found.label} and {found.architecture}, and {name} runs {wanted.label} on {wanted.architecture}"
        )
        raise InvalidInput(what, where=f"release {release.version}", do=f"Run frazil release build --for {name}")


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
            kept=cache_folder() / "environments",
        )


def released_jars(lock: Path) -> list[Any]:
    """Return the locked jars of a Spark session, but for the local catalog's database."""
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


def _print_result(release: Release, folder: Path) -> None:
    shown = table("file", "what", "kB", "sha256", right=("kB",))
    for file in sorted(release.files, key=lambda f: (list(Role).index(f.role), f.name)):
        shown.add_row(file.name, file.role, number(file.size_bytes // 1000), file.sha256[:16])
    out().print(shown)
    place = f"{release.label}, {release.architecture}"
    out().print(f"release {release.version} for {place}, {release.digest[:16]}, in {folder}", markup=False)
