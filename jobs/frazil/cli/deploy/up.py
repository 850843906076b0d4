"""`frazil deploy up` and `move-application`: release, plan, review, saved plan, apply, reconcile, smoke, in this order."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from frazil.cli.console import note, say
from frazil.cli.deploy.fetch import OUTPUT, read_document, write
from frazil.cli.deploy.plan import NO_RELEASE, Acceptances, Declared
from frazil.cli.deploy.program import DeploymentProgram, declared_deployment, options
from frazil.cli.deploy.smoke import print_results, probed
from frazil.cli.jobs import aws
from frazil.cli.jobs.reconcile import Minutes, reconcile_all, reconciler
from frazil.cli.options import EnvironmentOption, command_secrets, flag
from frazil.cli.release import built, refuse_other, release_of
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment
from frazil.doctor.deployment_account import refuse_wrong_in_account
from frazil.errors import InvalidInput
from frazil.exit_codes import worst
from frazil.release.installed import Source, is_checkout, source_at
from frazil.release.manifest import MANIFEST, Architecture
from frazil.release.upload import built_release, upload_release
from frazil.rollout.desired import INGEST, job_name
from frazil.rollout.group_jobs import deployed_pipelines

LAST = "ingestion"
STACKS = ("foundation", "confluent", LAST)
"""The stacks in their order. The release is uploaded before the last one, whose function runs it."""


ReleaseFile = Annotated[
    str | None, flag("--release", "Manifest of a built release.", "FILE|none", envvar="FRAZIL_RELEASE")
]
Reason = Annotated[str, flag("--accept-danger", "Accept dangers of the plans.", "REASON")]
Again = Annotated[bool, flag("--again", "Try a rolled-back release again.")]
Yes = Annotated[bool, flag("--yes", "Apply without a question.")]


def deploy(
    env: Declared = None,
    option: EnvironmentOption = None,
    release: ReleaseFile = None,
    reason: Reason = "",
    acceptances: Acceptances = None,
    group: Annotated[str | None, flag("--group", "Deploy the release to one group.", "NAME")] = None,
    again: Again = False,
    yes: Yes = False,
    smoke: Annotated[bool, flag("--smoke/--no-smoke", "Probe the environment at the end.")] = True,
    minutes: Minutes = 120,
) -> None:
    """Deploy an environment, step by step.

    For example: frazil deploy up dev

    Builds the release from checkout or wheel, if it changed.
    Applies the saved plan of each stack after its review.
    Refuses dangers. Asks before each apply.
    Reconciles the runs, then probes them (frazil deploy smoke).
    With --group, the other groups keep their release.
    After an interruption, repeat the command.

    Exit codes: 0 deployed, and the desired generation runs; 1 refused, not confirmed, rolled back, or a probe
    failed; 2; 3; 5; 6
    """
    program, name, declared = declared_deployment(env, option)
    given = options(accept_danger=reason.strip(), acceptances=acceptances, again=again, yes=yes)
    made = deployed(program, name, declared, release, given, group=group)
    if made is not None:
        job = job_name(INGEST, group) if group else None
        reconcile_jobs(made[0], command_secrets(), minutes, job=job)
        if smoke:
            _probe(made[0], declared, command_secrets())


def deployed(
    program: DeploymentProgram,
    name: str,
    declared: dict[str, Any],
    release: str | None,
    given: Sequence[str],
    *,
    group: str | None = None,
) -> tuple[Environment, Mapping[str, Any]] | None:
    """Deploy all stacks, or of those of ingestion only that of one group.

    Return the environment, which commands then know, and the outputs of its stack; None if nothing runs in it. Raises
    `typer.Exit` with the code of a stack that was not deployed.
    """
    refuse_wrong_in_account(declared)
    manifest = _manifest(release, declared, program.root, name)
    variables = {"FRAZIL_RELEASE": NO_RELEASE if manifest is None else str(manifest)}
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        file = Path(folder, "outputs.json")
        for stacks in _rounds(manifest, declared, group):
            is_last = LAST in stacks
            if is_last and manifest is not None:
                _upload(manifest.parent, declared)
            chosen = [*given, *(_only(group, declared, folder) if group and is_last else []), f"--outputs={file}"]
            program.run(*chosen, "--", name, *stacks, variables=variables)
        outputs = json.loads(file.read_text("utf-8"))[f"{name}-{LAST}"]
    if (address := outputs.get(OUTPUT)) is None or manifest is None:
        lacks = "release is deployed. frazil jobs reconcile ends those that are left"
        say(f"runs: none: no {lacks if manifest is None else 'pipeline of Spark is declared'}")
        return None
    place = read_document(address)
    write(place)
    say(f"environment: {place.name} is known by its name")
    return place, outputs


def _rounds(manifest: Path | None, declared: dict[str, Any], group: str | None) -> tuple[tuple[str, ...], ...]:
    """Return the stacks of each run of the program: all at once, unless something must come before the last one.

    That is the upload into a bucket that the first one makes, or the choice of one group.
    """
    is_split = bool(group) or (manifest is not None and not aws.declared_artifact_store(declared).exists())
    return (STACKS[:-1], STACKS[-1:]) if is_split else (STACKS,)


def _only(group: str, declared: dict[str, Any], folder: str) -> list[str]:
    """Return the options that deploy one group alone, with the pipelines that each job has so far."""
    file = Path(folder, "pipelines.json")
    file.write_text(json.dumps(deployed_pipelines(aws.declared_artifact_store(declared))), "utf-8")
    return [f"--group={group}", f"--deployed-pipelines={file}"]


def _manifest(choice: str | None, declared: dict[str, Any], root: Path, name: str) -> Path | None:
    """Return the manifest of the release to run; None if nothing should run. Builds it unless the project names one."""
    if choice is None and (is_checkout(root) or declared["release"] == NO_RELEASE):
        return _built(source_at(root), declared, root / ".frazil" / "releases" / name, root)
    choice = choice or str(declared["release"])
    if choice == NO_RELEASE:
        return None
    manifest = Path(root, choice).absolute() if choice == declared["release"] else Path(choice).absolute()
    refuse_other(release_of(manifest, do="Build one: frazil release build"), name, declared)
    return manifest


def _built(source: Source, declared: dict[str, Any], releases: Path, root: Path) -> Path:
    """Build the release into a folder of its commit or wheel, unless the folder holds it already."""
    label, architecture = declared["label"], Architecture(declared["architecture"])
    identity = source.commit or source.wheel_sha256 or ""
    folder = releases / ("changed" if source.is_dirty else identity[:12])
    manifest = folder / MANIFEST
    if manifest.is_file() and not source.is_dirty:
        found = built_release(folder)
        wanted = (identity, label, architecture)
        if (found.git_commit or found.wheel_sha256, found.label, found.architecture) == wanted:
            say(f"release: {found.version} ({found.digest[:16]}) is built already")
            return manifest
    shutil.rmtree(folder, ignore_errors=True)  # of other files, or of an interrupted build
    made = built(root, folder, label_name=label, architecture=architecture)
    is_of = f"of {'commit' if made.git_commit else 'wheel'} {identity[:12]}"
    is_of = "with changes that no commit has" if made.is_dirty else is_of
    say(f"release: {made.version} ({made.digest[:16]}), {is_of}, in {folder.relative_to(root)}")
    return manifest


def _upload(folder: Path, declared: dict[str, Any]) -> None:
    store = aws.declared_artifact_store(declared)
    release, uploaded = upload_release(folder, store, trusted=declared["trusted_keys"])
    say(f"upload: {sum(uploaded.values())} of {len(uploaded)} files were new, {release.key}")


def reconcile_jobs(place: Environment, secrets: Secrets, minutes: int, *, job: str | None = None) -> None:
    """Bring the runs of every job, or of one, to the deployed state. Ends with 1 if a generation was rolled back.

    The deployed reconciler does it: whoever deploys may pass no job's role. Stand-ins have no schedule that calls it.
    """
    watches = not aws.is_local(place)
    if watches:
        say("reconcile: waits for the deployed reconciler, which makes a pass every five minutes")
    reconcile_all(place, secrets, job, minutes=minutes, as_json=False, watches=watches)


def _probe(place: Environment, declared: dict[str, Any], secrets: Secrets) -> None:
    """Probe the deployed environment. Ends with the code of the worst failure; what is not shown fails nothing."""
    found = probed(place, declared, secrets)
    print_results(found)
    if code := worst(each.exit for each in found):
        say(f"smoke: the deployment is complete, and a probe failed. Repeat it: frazil deploy smoke {place.name}")
        raise typer.Exit(code)


FORMER = "former_applications"
"""The member of a deployment's description, and the output of the stack `ingestion`, in the same order."""


def move_application(
    env: Declared = None,
    option: EnvironmentOption = None,
    release: ReleaseFile = None,
    reason: Reason = "",
    acceptances: Acceptances = None,
    again: Again = False,
    yes: Yes = False,
    minutes: Minutes = 120,
) -> None:
    """Move job runs to another application.

    For example: frazil deploy move-application prod

    Declare the new application and the former one first.
    Deploys both, as frazil deploy up does.
    Reconciles: old runs end, new ones start and prove themselves.
    Stops the former application after its last run.
    After an interruption, repeat the command.

    Exit codes: 0 moved: the former application is stopped; 1 refused, rolled back, or runs are left; 2; 3; 5; 6
    """
    from frazil.rollout.removed_jobs import stop_former

    program, name, declared = declared_deployment(env, option)
    former = declared[FORMER]
    if not former:
        do = "Give the new one a name in `emr.application`, and list the one before in `emr.former` (docs/deploy.md)"
        raise InvalidInput("no former application is declared", where=f"environment {name}", do=do)
    say(f"move: from {', '.join(former)} to {declared['application']}")
    given = options(accept_danger=reason.strip(), acceptances=acceptances, again=again, yes=yes)
    made = deployed(program, name, declared, release, given)
    if made is None:
        raise InvalidInput("no job runs", where=f"environment {name}", do="Deploy a release and a pipeline of Spark")
    (place, outputs), secrets = made, command_secrets()
    try:
        reconcile_jobs(place, secrets, minutes)
    except typer.Exit:
        say(f"move: not finished: a job still runs on {', '.join(former)}. Fix the cause, then repeat the command")
        raise
    ended = []
    for title, application in zip(former, outputs[FORMER], strict=True):
        on_wait = partial(lambda title, why: note(f"{title}: {why}"), title)
        exists = stop_former(application, reconciler(place, secrets), on_wait=on_wait, patience_seconds=minutes * 60)
        ended.append(f"{title} ({application}) {'is stopped' if exists else 'does not exist'}, without runs")
    do = f'Remove it from emr.former, then run: frazil deploy up {name} --accept-danger "it is stopped"'
    say(f"move: done: all jobs run on {declared['application']}; {'; '.join(ended)}. {do}")
