"""Copies of the documents of every generation that was started, so that a rollback finds them.

Deployment writes a generation's documents under keys that are digests of their content. The
reconciler copies both documents before it starts a run, and restores them from the copy on a rollback, if they were
deleted. Releases are never deleted.
"""

from __future__ import annotations

from frazil.errors import InvalidInput
from frazil.rollout.desired import Desired
from frazil.rollout.state import Store


def kept_key(key: str) -> str:
    """Return the key of a document's copy."""
    return f"reconcile/kept/{key.rpartition('/')[2]}"


def keep_documents(desired: Desired, store: Store) -> None:
    """Copy each of the generation's documents, or restore it from its copy. Idempotent.

    Raises `InvalidInput` if neither a document nor its copy exists.
    """
    for key in (desired.document, desired.environment):
        held = store.read(key)
        if held is not None:
            store.put_once(kept_key(key), held.data)
            continue
        copy = store.read(kept_key(key))
        if copy is None:
            raise InvalidInput(f"the document {key} does not exist", where=f"job {desired.job}", do="Deploy it")
        store.put_once(key, copy.data)
