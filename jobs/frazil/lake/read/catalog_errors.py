"""Translate what catalogs and object stores raise into one error."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from frazil.errors import CatalogUnavailable


@contextmanager
def translated_errors(where: str) -> Iterator[None]:
    """Turn what catalogs and object stores throw into `CatalogUnavailable`; `FileNotFoundError` stays what it is."""
    try:
        yield
    except FileNotFoundError:
        raise
    except _refusals() as error:
        raise _unavailable(error, where) from None


def damage() -> tuple[type[Exception], ...]:
    """Return what PyIceberg throws at a metadata file, or a manifest, whose bytes are not what was written."""
    from pyiceberg.exceptions import ResolveError, ValidationError

    of_python = (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        EOFError,
        ArithmeticError,
        AssertionError,
        MemoryError,
        SystemError,  # of its extension module, at a negative length
        RecursionError,
    )
    return (*of_python, zlib.error, ResolveError, ValidationError)


def _refusals() -> tuple[type[Exception], ...]:
    """Return what the SDKs throw when a service refuses or is unavailable; only of SDKs that were imported."""
    names = (
        (
            "pyiceberg.exceptions",
            ("RESTError", "OAuthError", "SignError", "NoSuchIdentifierError", "NoSuchNamespaceError"),
        ),
        ("botocore.exceptions", ("BotoCoreError", "ClientError")),
        ("sqlalchemy.exc", ("SQLAlchemyError",)),
    )
    loaded = ((sys.modules[module], classes) for module, classes in names if module in sys.modules)
    return (OSError, *(getattr(module, name) for module, classes in loaded for name in classes))


def _unavailable(error: Exception, where: str) -> CatalogUnavailable:
    lines = str(error).strip().splitlines() or [""]
    return CatalogUnavailable(
        f"{type(error).__name__}: {lines[0]}",  # not cut: half a secret could not be masked
        where=where,
        do="Check the catalog's and the object store's settings",
    )
