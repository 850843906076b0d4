"""The entry point of `frazil`: its commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer._click.exceptions import UsageError  # typer brings a click of its own
from typer.core import TyperGroup

from frazil.cli import (
    accept,
    acceptances,
    apply,
    bootstrap,
    check,
    cost,
    dead_letters,
    deploy,
    doctor,
    environments,
    history,
    infer,
    init,
    local,
    maintain,
    move_application,
    preview,
    query,
    reconcile,
    release,
    release_check,
    review,
    rotate,
    run,
    runs,
    show,
    smoke,
    status,
    stop,
    topics,
    verify,
)
from frazil.cli.console import print_error, show_json
from frazil.cli.demo import command
from frazil.cli.one_environment import OneEnvironment
from frazil.clients.secrets import Secrets
from frazil.errors import FrazilError
from frazil.errors.causes import MOST_CHARACTERS
from frazil.errors.missing_package import missing_package
from frazil.exit_codes import HELP_TEXT, Exit, exit_of

DEBUG = "FRAZIL_DEBUG"
JSON = "--json"


GROUPS = {
    "Start": ("init",),
    "Pipelines": (
        "check",
        "doctor",
        "topics",
        "infer",
        "preview",
        "run",
        "status",
        "query",
        "show",
        "verify",
        "history",
        "maintain",
        "accept",
        "dead-letters",
    ),
    "This machine": ("local", "demo"),
    "Deployments": (
        "cost",
        "bootstrap",
        "deploy",
        "move-application",
        "release",
        "environments",
        "review",
        "acceptances",
        "apply",
        "reconcile",
        "smoke",
        "rotate",
        "runs",
        "logs",
        "stop",
        "start",
    ),
}
"""The commands by heading, in the order of the help."""


class Commands(TyperGroup):
    """The commands under their headings. An error of a command is printed on one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of the help."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        for heading, names in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(80)) for name in names])

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A `FrazilError` ends it with the exit code of its class; with --json it is printed as JSON too."""
        is_json = JSON in _arguments(ctx)
        try:
            return _with_packages(super().invoke, ctx)
        except FrazilError as error:
            print_traceback(error, secrets_of(ctx))
            message, code = secrets_of(ctx).redactor.redact(str(error)), exit_of(error)
            if is_json:
                show_json(error_document(type(error).__name__, message, code))
            print_error(message)
            raise typer.Exit(code) from error
        except UsageError as error:
            if is_json:
                show_json(error_document("InvalidInput", error.format_message(), Exit.INVALID_INPUT))
            raise


def print_traceback(error: Exception, secrets: Secrets) -> None:
    """Print the traceback on stderr if `FRAZIL_DEBUG` is set, without secrets. The exit code does not depend on it."""
    if os.environ.get(DEBUG):
        sys.stderr.write(secrets.redactor.redact("".join(traceback.format_exception(error))))


def _with_packages(run: Callable[[Any], Any], ctx: Any) -> Any:
    """Run a command. Raises `LocalPartFailed` if a package of an extra is not installed."""
    try:
        return run(ctx)
    except ModuleNotFoundError as error:
        raise missing_package(error.name) or error from error


def error_document(name: str, message: str, code: Exit) -> dict[str, Any]:
    """Return what a command with --json prints for an error: its class, its message and the exit code."""
    return {"error": {"type": name, "message": message, "exit_code": int(code)}}


def _arguments(context: Any) -> tuple[str, ...]:
    """Return the command's own arguments before they are parsed."""
    return (*context._protected_args, *context.args)


def secrets_of(context: Any) -> Secrets:
    """Return the secrets that this command has read and masks."""
    root = context.find_root()
    if not isinstance(root.obj, Secrets):
        root.obj = Secrets(os.environ)
    secrets: Secrets = root.obj
    return secrets


app = typer.Typer(
    cls=Commands,
    help=f"""Kafka topics as Apache Iceberg tables, as code.

    For example: frazil local up, then frazil run orders --once

    {HELP_TEXT}""",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(is_asked: bool) -> None:
    if is_asked:
        from frazil.version import VERSION

        sys.stdout.write(f"frazil {VERSION}\n")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    secrets_of(context)


app.command("init", short_help="Write a new project.")(init.init)
app.command("check", short_help="Check declarations.")(check.check)
app.command("doctor", short_help="Check what pipelines need in an environment.")(doctor.doctor)
app.command("preview", short_help="Show records as the rows of a table.")(preview.preview)
app.command("run", short_help="Land topics as tables, on this machine.")(run.run)
app.command("query", short_help="Query the tables with SQL.")(query.query)
app.command("status", short_help="Show all pipelines at a glance.")(status.status)
app.command("show", short_help="Show a pipeline's offsets, lag and snapshots.")(show.show)
app.command("verify", short_help="Prove that no record is lost or doubled.")(verify.verify)
app.command("history", short_help="Print the SQL of a changelog's views.")(history.history)
app.command("maintain", short_help="Compact files and expire snapshots.")(maintain.maintain)
app.command("accept", short_help="Record an operator's decision.")(accept.accept)
app.add_typer(dead_letters.app, name="dead-letters", short_help="List and show rejected records.")
app.command("infer", short_help="Write a schema file from JSON records.")(infer.infer)
app.command("topics", short_help="List topics, with their formats guessed.")(topics.topics)
app.add_typer(local.app, name="local", short_help="Start and stop a local broker and registry.")
app.command("demo", short_help="Land and prove real data on this machine.")(command.demo)
app.command("cost", short_help="Estimate a month's bill of topics.")(cost.cost)
app.command("bootstrap", short_help="Prepare an account for its first deployment.")(bootstrap.bootstrap)
app.command("deploy", short_help="Deploy: release, plan, review, apply, reconcile.")(deploy.deploy)
release.app.command("check")(release_check.check)
app.command("move-application", short_help="Move job runs to another application.")(move_application.move_application)
app.add_typer(release.app, name="release", short_help="Build and upload releases.")
app.add_typer(environments.app, name="environments", short_help="Fetch the documents of deployed environments.")
app.command("review", short_help="Review a deployment: data, permissions, cost.")(review.review)
app.command("acceptances", short_help="Print the dangers that code owners accepted.")(acceptances.acceptances)
app.command("apply", short_help="Apply the plan that was reviewed.")(apply.apply)
app.command("reconcile", short_help="Bring EMR Serverless to the deployed state.")(reconcile.reconcile)
app.command("smoke", short_help="Probe what only a real run can show.")(smoke.smoke)
app.command("rotate", short_help="Replace the API keys of the jobs.")(rotate.rotate)
app.command("runs", short_help="List job runs.")(runs.runs)
app.command("logs", short_help="Print the log of a job run.")(runs.logs)
app.command("stop", short_help="Stop pipelines of a job (alias: pause).")(stop.stop)
app.command("start", short_help="Start stopped pipelines (alias: resume).")(stop.start)
app.command("pause", hidden=True)(stop.stop)
app.command("resume", hidden=True)(stop.start)


for _group in (app, *(each.typer_instance for each in app.registered_groups)):
    for _command in _group.registered_commands if _group else ():
        _command.cls = OneEnvironment


def main() -> None:
    """Run the command line. A defect is printed on one line too; with FRAZIL_DEBUG set, with its traceback."""
    secrets = Secrets(os.environ)
    try:
        app(obj=secrets)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the end of the process
        print_traceback(error, secrets)
        message = secrets.redactor.redact(" ".join(str(error).split()))[
            :MOST_CHARACTERS
        ]  # masked first: half a secret is no match
        if JSON in sys.argv:
            show_json(error_document(type(error).__name__, message, Exit.FAULT))
        print_error(f"{type(error).__name__}: {message}. This is a defect of Frazil. Set {DEBUG}=1 for a traceback")
        sys.exit(Exit.FAULT)


if __name__ == "__main__":
    main()
