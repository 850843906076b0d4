"""`frazil deploy fetch`: fetch the documents of deployed environments, to find them by name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

from frazil.cli.console import say, show_json, write_at_once
from frazil.cli.options import ENV, AsJson, argument, flag
from frazil.declaration import Environment, canonical, environment_document, parse_environment
from frazil.errors import InvalidInput
from frazil.project.environments import documents_folder

OUTPUT = "environment_document"
"""The output of a deployment that names its environment document."""
_ADDRESS = re.compile("s3://([^/]+)/(.+)")


def fetch(
    source: Annotated[
        str, argument("OUTPUTS|S3-ADDRESS", "The file of `cdktf deploy --outputs-file`, or its environment_document.")
    ],
    option: Annotated[str | None, flag(ENV, "Environment to fetch; by default all of them.", "NAME")] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch the documents of deployed environments, for use by name.

    For example: frazil deploy fetch outputs.json

    Writes .frazil/environments/NAME.json, with references to secrets only.
    Reads S3 with the credentials of the shell.

    Exit codes: 0 written; 2 invalid file, address or document; 3 S3 is unavailable
    """
    addresses = [source] if source.startswith("s3:") else _addresses(Path(source))
    read = [read_document(address) for address in addresses]
    found = [each for each in read if option in (None, each.name)]
    if not found:
        what, names = f"no document is of the environment {option}", ", ".join(each.name for each in read)
        raise InvalidInput(what, where=source, do=f"Name one of {names}, or leave out --env")
    folder = documents_folder()
    for each in found:
        write(each)
    if as_json:
        show_json({"environments": [each.name for each in found]})
        return
    for each in found:
        say(f"{each.name} is in {folder / each.name}.json")


def _addresses(file: Path) -> list[str]:
    """Return the addresses of the documents that a file of outputs names."""
    try:
        outputs: Any = json.loads(file.read_bytes())
    except OSError as error:
        raise InvalidInput.unreadable(file, error, do=_REMEDY) from None
    except ValueError:
        raise InvalidInput("it is no JSON", where=str(file), do=_REMEDY) from None
    stacks = outputs.values() if isinstance(outputs, dict) else ()
    found = [stack[OUTPUT] for stack in stacks if isinstance(stack, dict) and isinstance(stack.get(OUTPUT), str)]
    if not found:
        raise InvalidInput(f"no stack of it has the output {OUTPUT}", where=str(file), do=_REMEDY)
    return found


_REMEDY = "Give what `cdktf deploy --outputs-file FILE` wrote when it deployed an ingestion stack"


def read_document(address: str) -> Environment:
    """Read the environment document at an address on S3."""
    from frazil.clients.object_store import ObjectStore, s3_client

    named = _ADDRESS.fullmatch(address)
    if named is None:
        raise InvalidInput("that is no address of an object", where=repr(address), do="Write s3://BUCKET/KEY")
    bucket, key = named.groups()
    stored = ObjectStore(s3_client(None), bucket).read(key)
    if stored is None:
        what = "there is no such object"
        raise InvalidInput(what, where=address, do="Was it deployed since? Its newest outputs name the newest")
    return parse_environment(stored.data)


def write(environment: Environment) -> None:
    """Write the document of an environment, so that it is found by name."""
    write_at_once(documents_folder() / f"{environment.name}.json", canonical(environment_document(environment)))
