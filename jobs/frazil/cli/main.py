"""The entry point of `frazil`: its commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import typer
from typer._click.exceptions import UsageError  # typer brings a click of its own
from typer.core import TyperCommand, TyperGroup

from frazil.cli import doctor, init, local, release, schema
from frazil.cli.console import print_error, show_json
from frazil.cli.demo import command
from frazil.cli.deploy import account, fetch, plan, smoke, up
from frazil.cli.jobs import reconcile, runs
from frazil.cli.options import FLAGS, flag
from frazil.cli.pipelines import check, dead_letters, maintain, preview, query, run, status, verify
from frazil.clients.secrets import Secrets
from frazil.errors import FrazilError
from frazil.errors.causes import MOST_CHARACTERS
from frazil.errors.missing_package import missing_package
from frazil.exit_codes import HELP_TEXT, Exit, exit_of


class OneEnvironment(TyperCommand):
    """A command whose option `--env`, with all of its names, may be repeated only with the same value."""

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser of the command line."""
        parser: Any = super().make_parser(ctx)
        option = parser._long_opt.get(FLAGS[0])
        if option is not None:
            process = option.process

            def processed(value: str, state: Any) -> None:
                earlier = state.opts.get(option.dest, value)
                if earlier != value:
                    raise UsageError(f"The options name the environments {earlier} and {value}. Name one", ctx)
                process(value, state)

            option.process = processed
        return parser


DEBUG = "FRAZIL_DEBUG"
JSON = "--json"


def group(about: str, **commands: Callable[..., None]) -> typer.Typer:
    """Return a group of commands, in the order of its help."""
    made = typer.Typer(cls=Listed, help=about, no_args_is_help=True, rich_markup_mode=None)
    for name, made_by in commands.items():
        made.command(name.replace("_", "-"))(made_by)
    return made


class Listed(TyperGroup):
    """Commands in the order of the help, each with its summary."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of the help."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        for heading, names in self.headings().items():
            with formatter.section(heading):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(80)) for name in names])

    def headings(self) -> Mapping[str, Iterable[str]]:
        """Return the names of the commands by heading."""
        return {"Commands": self.commands}


GROUPS: dict[str, dict[str, tuple[Callable[..., None] | typer.Typer, str]]] = {
    "Start": {
        "init": (init.init, "Write a new project."),
        "local": (
            group(
                "Local services of this folder: broker, registry, lake.",
                up=local.up,
                status=local.status,
                demo=command.demo,
                produce=local.produce,
                jars=local.jars,
                down=local.down,
            ),
            "Run local services, and a demo on real data.",
        ),
        "schema": (
            group("Topics, their formats, and schema files.", topics=schema.topics, infer=schema.infer),
            "List topics, and infer schemas from records.",
        ),
        "check": (check.check, "Check declarations."),
        "doctor": (doctor.doctor, "Check what pipelines need in an environment."),
        "preview": (preview.preview, "Show records as the rows of a table."),
    },
    "Pipelines": {
        "run": (run.run, "Land topics as tables, on this machine."),
        "status": (status.status, "Show all pipelines, or one in full."),
        "query": (query.query, "Query the tables with SQL."),
        "verify": (verify.verify, "Prove that no record is lost or doubled."),
        "history": (query.history, "Print the SQL of a changelog's views."),
        "maintain": (maintain.maintain, "Compact files and expire snapshots."),
        "accept": (maintain.accept, "Record an operator's decision."),
        "dead-letters": (
            group(
                "Rejected records, and the reasons for their rejection.",
                list=dead_letters.list_,
                show=dead_letters.show,
            ),
            "List and show rejected records.",
        ),
    },
    "Deployments": {
        "deploy": (
            group(
                "Deployments to AWS: plan, apply, probe.",
                cost=plan.cost,
                bootstrap=account.bootstrap,
                plan=plan.review,
                up=up.deploy,
                acceptances=plan.acceptances,
                apply=plan.apply,
                smoke=smoke.smoke,
                fetch=fetch.fetch,
                rotate_keys=account.rotate,
                move_application=up.move_application,
            ),
            "Plan, review, apply and probe deployments.",
        ),
        "jobs": (
            group(
                "Job runs of a deployed environment.",
                list=runs.runs,
                logs=runs.logs,
                stop=reconcile.stop,
                start=reconcile.start,
                reconcile=reconcile.reconcile,
            ),
            "List, stop and start job runs; print logs.",
        ),
        "release": (
            group(
                "Releases: the files that job runs are made of.",
                build=release.build,
                sign=release.sign,
                upload=release.upload,
                check=release.check,
            ),
            "Build, sign, upload and check releases.",
        ),
    },
}
"""The commands with their summaries by heading, in the order of the help."""


class Commands(Listed):
    """The commands under their headings. An error of a command is printed on one line."""

    def headings(self) -> Mapping[str, Iterable[str]]:
        """Return the names of the commands by heading."""
        return GROUPS

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
    version: Annotated[bool, flag("--version", "Print the version.", is_eager=True, callback=_version)] = False,
) -> None:
    secrets_of(context)


for _heading in GROUPS.values():
    for _name, (_made, _summary) in _heading.items():
        if isinstance(_made, typer.Typer):
            app.add_typer(_made, name=_name, short_help=_summary)
        else:
            app.command(_name, short_help=_summary)(_made)
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
