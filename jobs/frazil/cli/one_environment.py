"""A command that refuses two different environments: of two equal options, the last one would silently count."""

from __future__ import annotations

from typing import Any

from typer._click.exceptions import UsageError  # typer brings a click of its own
from typer.core import TyperCommand

from frazil.cli.options import FLAGS


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
