"""Stacks that another checkout synthesised, such as the one of a pull request from a fork: checked, and written again for a plan.

Nothing of the other checkout runs. Of its folder only `<stack>/cdk.tf.json` is read, and what Terraform reads is written again from
the checked content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frazil.declaration.pipeline import GROUP_NAME
from policies.foreign_stack import MOST_BYTES, parsed, refusals
from stacks.deployments import Deployment
from stacks.terraform_command import NotPlanned
from stacks.terraform_plans import APP, STACKS, link_local_state, synthesise, synthesised

_MOST_SHOWN = 20
_GROUP = re.compile(GROUP_NAME)


def checked(
    deployment: Deployment, given: Path, folder: Path, settings: Mapping[str, str], app: Sequence[str] = APP
) -> dict[str, Path]:
    """Check the stacks in the folder `given` and write them below `folder`. Return their folders by name.

    This checkout synthesises the environment too: its providers and states are the expected ones. Raises `NotPlanned` with what
    is refused.
    """
    base = folder / "base"
    base.mkdir()
    trusted = {name: synthesised(each) for name, each in synthesise(deployment, base, settings, app).items()}
    states = [_as_read(each) for each in trusted.values()]
    link_local_state(folder)
    problems: list[str] = []
    written: dict[str, Path] = {}
    for name in _names(deployment, trusted, given):
        try:
            content = parsed(_bytes(given / name / "cdk.tf.json"))
            expected = _expected(name, deployment, trusted)
        except (OSError, ValueError) as error:
            problems.append(f"{name}: it cannot be read: {error}")
            continue
        problems += [f"{name}: {each}" for each in refusals(content, expected, states)]
        written[name] = folder / "cdktf.out" / "stacks" / name
        written[name].mkdir(parents=True)
        (written[name] / "cdk.tf.json").write_text(json.dumps(content), "utf-8")
    if problems:
        more = f"; and {len(problems) - _MOST_SHOWN} more" if len(problems) > _MOST_SHOWN else ""
        shown = "; ".join(repr(each)[1:-1] for each in problems[:_MOST_SHOWN])
        raise NotPlanned(f"the stacks are not planned with credentials: {shown}{more}")
    return written


def _names(deployment: Deployment, trusted: Mapping[str, Any], given: Path) -> list[str]:
    """Return the stacks of an environment, and those of the groups that either checkout has."""
    own = [f"{deployment.name}-{what}" for what in STACKS]
    both = {*trusted, *(each.name for each in given.iterdir())}
    return [*own, *sorted(name for name in both if name.startswith(f"{own[-1]}-"))]


def _expected(name: str, deployment: Deployment, trusted: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the trusted stack of a name. That of a new group has the provider and the state of `ingestion`, named for it."""
    if name in trusted:
        return trusted[name]
    what, like = name.removeprefix(f"{deployment.name}-"), trusted[f"{deployment.name}-{STACKS[-1]}"]
    if not _GROUP.fullmatch(what.removeprefix(f"{STACKS[-1]}-")):
        raise ValueError("it is no name of a group")
    text = json.dumps({section: like[section] for section in ("provider", "terraform")})
    text = text.replace(f'/{STACKS[-1]}.tfstate"', f'/{what}.tfstate"')
    named: dict[str, Any] = json.loads(text.replace(f'"frazil:stack": "{STACKS[-1]}"', f'"frazil:stack": "{what}"'))
    return named


def is_as_trusted(folder: Path) -> bool:
    """Return whether the checked stacks below `folder` declare the same as those of this checkout."""
    for written in sorted((folder / "cdktf.out" / "stacks").iterdir()):
        base = folder / "base" / "cdktf.out" / "stacks" / written.name
        if not base.is_dir() or _declared(synthesised(base)) != _declared(synthesised(written)):
            return False
    return True


def _declared(value: Any) -> Any:
    """Return a stack without CDKTF's notes."""
    if isinstance(value, dict):
        return {name: _declared(part) for name, part in value.items() if name != "//"}
    return [_declared(part) for part in value] if isinstance(value, list) else value


def _bytes(file: Path) -> bytes:
    """Read a regular file of at most `MOST_BYTES`; a link could lead anywhere."""
    if file.is_symlink() or file.parent.is_symlink() or not file.is_file():
        raise ValueError("it is no regular file")
    with file.open("rb") as stream:
        return stream.read(MOST_BYTES + 1)


def _as_read(stack: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a stack in the form in which another stack reads it."""
    [(backend, config)] = stack["terraform"]["backend"].items()
    return {"backend": backend, "config": {name: value for name, value in config.items() if name != "use_lockfile"}}
