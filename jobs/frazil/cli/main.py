"""The entry point of `frazil`: its commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import os
import re
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
from frazil.cli.options import command_secrets, flag
from frazil.cli.pipelines import (
    check,
    dead_letters,
    maintain,
    metrics,
    preview,
    query,
    replay,
    run,
    status,
    trace,
    ui,
    verify,
)
from frazil.clients.secrets import Secrets
from frazil.errors import FrazilError
from frazil.errors.causes import MOST_CHARACTERS
from frazil.errors.missing_package import missing_package
from frazil.exit_codes import HELP_TEXT, Exit, exit_of

USUAL = {"2": "invalid input", "3": "a service is unavailable", "5": "not planned", "6": "Terraform failed"}
"""The meanings of exit codes that a command omits."""


class Command(TyperCommand):
    """A command whose help keeps its lines."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help = help_of(self.help or "")


DEBUG = "FRAZIL_DEBUG"
JSON = "--json"


def help_of(text: str) -> str:
    """Return the help of a command: lines are not joined, and each exit code has its own."""
    *paragraphs, codes = text.split("\n\n")
    listed = re.split(r"; (?=\d+(?: |;|$))", " ".join(codes.split()).removeprefix("Exit codes: "))
    lines = [f"  {one if ' ' in one else f'{one} {USUAL[one]}'}" for one in listed]
    first, *others = [*paragraphs, "\n".join(["Exit codes:", *lines])]
    return "\n\n".join([first, *(f"\b\n{each}" for each in others)])


def group(about: str, **commands: Callable[..., None]) -> typer.Typer:
    """Return a group of commands, in the order of its help."""
    made = typer.Typer(cls=Listed, help=about, no_args_is_help=True, rich_markup_mode=None)
    for name, made_by in commands.items():
        made.command(name.replace("_", "-"), cls=Command)(made_by)
    return made


class Listed(TyperGroup):
    """Commands in the order of the help, each with its summary."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        for heading, names in self.headings().items():
            with formatter.section(heading):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(80)) for name in names])

    def headings(self) -> Mapping[str, Iterable[str]]:
        """Return the names of the commands by heading."""
        return {"Commands": self.commands}


GROUPS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Start": {
        "init": init.init,
        "local": group(
            "Run local services, and a demo on real data.",
            up=local.up,
            status=local.status,
            demo=command.demo,
            produce=local.produce,
            jars=local.jars,
            down=local.down,
        ),
        "schema": group("List topics, and infer schemas from records.", topics=schema.topics, infer=schema.infer),
        "check": check.check,
        "doctor": doctor.doctor,
        "preview": preview.preview,
    },
    "Pipelines": {
        "run": run.run,
        "status": status.status,
        "ui": ui.ui,
        "metrics": group("List metrics, and write alarms and a dashboard.", list=metrics.list_, write=metrics.write),
        "query": query.query,
        "verify": verify.verify,
        "history": query.history,
        "trace": trace.trace,
        "maintain": maintain.maintain,
        "accept": maintain.accept,
        "dead-letters": group(
            "List and show rejected records, and land them again.",
            list=dead_letters.list_,
            show=dead_letters.show,
            replay=replay.replay,
            discard=replay.discard,
        ),
    },
    "Deployments": {
        "deploy": group(
            "Plan, review, apply and probe deployments.",
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
        "jobs": group(
            "List, stop and start job runs; print logs.",
            list=runs.runs,
            logs=runs.logs,
            stop=reconcile.stop,
            start=reconcile.start,
            reconcile=reconcile.reconcile,
        ),
        "release": group(
            "Build, sign, upload and check releases.",
            build=release.build,
            sign=release.sign,
            upload=release.upload,
            check=release.check,
        ),
    },
}
"""The commands by heading, in the order of the help."""


class Commands(Listed):
    """The commands under their headings. An error of a command is printed on one line."""

    def headings(self) -> Mapping[str, Iterable[str]]:
        """Return the names of the commands by heading."""
        return GROUPS

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A `FrazilError` ends it with the exit code of its class; with --json it is printed as JSON too."""
        is_json = JSON in (*ctx._protected_args, *ctx.args)
        try:
            return _with_packages(super().invoke, ctx)
        except FrazilError as error:
            print_traceback(error, command_secrets())
            message, code = command_secrets().redactor.redact(str(error)), exit_of(error)
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
    version: Annotated[bool, flag("--version", "Print the version.", is_eager=True, callback=_version)] = False,
) -> None:
    pass


for _heading in GROUPS.values():
    for _name, _made in _heading.items():
        if isinstance(_made, typer.Typer):
            app.add_typer(_made, name=_name)
        else:
            app.command(_name, cls=Command)(_made)


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
