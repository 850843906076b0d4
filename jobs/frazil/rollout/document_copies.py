"""Kept: the documents of every generation that was started, so that the one before can be gone back to.

Deployment writes a generation's documents under keys that name their content, and deletes those that it no longer declares: an
old generation's are gone with the deployment that replaces it. So the reconciler keeps a copy before it starts a run, and puts
it back under its own key when it goes back. Releases are never deleted.
"""

from __future__ import annotations

from frazil.errors import InvalidInput
from frazil.rollout.desired import Desired
from frazil.rollout.state import Store


def kept_key(key: str) -> str:
    """Where the copy of a document is."""
    return f"reconcile/kept/{key.rpartition('/')[2]}"


def keep_documents(desired: Desired, store: Store) -> None:
    """Have a copy of each of the generation's documents, and each document where runs look for it.

    Raises `InvalidInput` if one is neither there nor kept. Done twice, it is done once.
    """
    for key in (desired.document, desired.environment):
        held = store.read(key)
        if held is not None:
            store.put_once(kept_key(key), held.data)
            continue
        copy = store.read(kept_key(key))
        if copy is None:
            raise InvalidInput(f"the document {key} is not there", where=f"job {desired.job}", do="Deploy it")
        store.put_once(key, copy.data)
