"""Notice another value of a secret by which rows of a table were masked: equal values would have two texts, and keys two rows."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable

from frazil.clients.secrets import reference
from frazil.declaration import Hmac, Pipeline, Secret
from frazil.errors import InvalidInput
from frazil.job.context import JobContext
from frazil.lake.layout import Layout
from frazil.lake.ledger.next_offsets import canonical
from frazil.lake.tables import change_layout

MASK_SECRETS = "frazil.mask-secrets"
"""The table property with the first digits of an HMAC of a fixed text for each secret, by its reference."""
_DIGITS = 8


def mask_secrets(pipeline: Pipeline, read: Callable[[Secret], str]) -> dict[str, str]:
    """Return what the property has."""
    secrets = {reference(mask.secret): mask.secret for mask in pipeline.shape.masks.values() if isinstance(mask, Hmac)}
    return {
        name: hmac.new(read(secret).encode(), b"frazil", hashlib.sha256).hexdigest()[:_DIGITS]
        for name, secret in sorted(secrets.items())
    }


def check_mask_secrets(pipeline: Pipeline, job: JobContext, actual: Layout) -> None:
    """Raise `InvalidInput` if a secret has another value than the one that masked rows; note secrets that are new."""
    known, now = (
        dict(json.loads(actual.properties.get(MASK_SECRETS, "{}"))),
        mask_secrets(pipeline, lambda secret: job.secret(secret)),
    )
    if changed := [name for name, mark in now.items() if known.get(name, mark) != mark]:
        raise InvalidInput(
            f"the secret {changed[0]} has another value than the one by which the rows of the table were masked",
            where=f"pipeline {pipeline.name}, shape.mask",
            do="Restore its value, or name another table and delete this one",
        )
    if now.keys() - known.keys():
        change_layout(
            job.iceberg, pipeline.table.identifier, (), {MASK_SECRETS: canonical({**known, **now})}, (), False
        )
