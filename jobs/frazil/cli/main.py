"""The entry point of `frazil`: its commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from frazil.cli import (
    accept,
    check,
    dead_letters,
    demo,
    deployed,
    local,
    maintain,
    reconcile,
    release,
    review,
    run,
    runs,
    show,
    stop,
    verify,
)
from frazil.cli.screen import tell_error
from frazil.clients.secrets import Secrets
from frazil.errors import FrazilError
from frazil.exits import HELP, Exit, exit_of

DEBUG = "FRAZIL_DEBUG"


class Commands(TyperGroup):
    """The commands, in the order in which they are added; an error of theirs is told on one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The order of the help."""
        return list(self.commands)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. An error that names itself ends it with that error's exit code."""
        try:
            return super().invoke(ctx)
        except FrazilError as error:
            if os.environ.get(DEBUG):
                raise
            tell_error(secrets_of(ctx).redactor.redact(str(error)))
            raise typer.Exit(exit_of(error)) from error


def secrets_of(context: Any) -> Secrets:
    """The secrets that this command has read, and may have to mask."""
    root = context.find_root()
    if not isinstance(root.obj, Secrets):
        root.obj = Secrets(os.environ)
    secrets: Secrets = root.obj
    return secrets


app = typer.Typer(
    cls=Commands,
    help=f"""Kafka topics as Apache Iceberg tables, as code.

    For example: frazil local up, then frazil run flights --once

    {HELP}""",
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
        bool, typer.Option("--version", help="Tell the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    secrets_of(context)


app.add_typer(local.app, name="local")
app.command("demo")(demo.demo)
app.command("check")(check.check)
app.command("run")(run.run)
app.command("show")(show.show)
app.command("verify")(verify.verify)
app.command("maintain")(maintain.maintain)
app.command("accept")(accept.accept)
app.add_typer(dead_letters.app, name="dead-letters")
app.command("environment")(deployed.environment)
app.add_typer(release.app, name="release")
app.command("review")(review.review)
app.command("reconcile")(reconcile.reconcile)
app.command("runs")(runs.runs)
app.command("logs")(runs.logs)
app.command("stop")(stop.stop)
app.command("start")(stop.start)


def main() -> None:
    """Run the command line. A fault of our own is told on one line too; with FRAZIL_DEBUG set, with its traceback."""
    secrets = Secrets(os.environ)
    try:
        app(obj=secrets)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        said = secrets.redactor.redact(" ".join(str(error).split()))[:500]  # masked first: half a secret is no match
        tell_error(f"{type(error).__name__}: {said}. This is a fault of Frazil's: {DEBUG}=1 tells where")
        sys.exit(Exit.FAULT)


if __name__ == "__main__":
    main()
