"""Upgrade: rewrite a JSON document of version 1 as version 2, in its place."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from frazil.declaration import canonical, parse
from frazil.declaration.document import DOCUMENT_VERSION
from frazil.declaration.upgrade import Change, upgraded
from frazil.errors import InvalidInput
from frazil.project.declaration_file import declared, read


def upgrade(file: Path) -> tuple[Change, ...]:
    """Rewrite the file and return what was moved; empty if it already has the newest version, and is left alone.

    Raises `InvalidDeclaration` if the document has problems and `InvalidInput` if the file is no document; it is then untouched.
    """
    source = read(file)
    if file.suffix != ".json":
        do = "`frazil check` names the new place of each argument that has moved"
        raise InvalidInput("only a JSON document has a version", where=str(file), do=do)
    pipelines = declared(file)
    document = json.loads(source)
    if document["version"] == DOCUMENT_VERSION:
        return ()
    found = upgraded({"pipelines": document["pipelines"]})
    document |= {"version": DOCUMENT_VERSION, **found.members}
    if parse(document) != pipelines:
        raise InvalidInput("version 2 would not say the same", where=str(file), do="Report it with the document")
    is_canonical = canonical(json.loads(source)) == source
    _replace(file, canonical(document) if is_canonical else _pretty(document, source.decode()))
    return (Change("version 1", f"version {DOCUMENT_VERSION}"), *found.changes)


def _pretty(document: object, source: str) -> bytes:
    """Return the document's text, indented as the source is."""
    indent = re.search(r"\n([ \t]+)", source)
    return (json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n").encode()


def _replace(file: Path, content: bytes) -> None:
    """Put the content in the file's place at once: a reader sees the old document or the new one."""
    place, draft = file.resolve(), None
    try:
        if not os.access(place, os.W_OK):  # a rename would replace a file that may not be written
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as made:
            draft = Path(made.name)
            made.write(content)
            made.flush()
            os.fsync(made.fileno())
        shutil.copymode(place, draft)
        os.replace(draft, place)
    except OSError as error:
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise InvalidInput.unwritable(file, error) from error
