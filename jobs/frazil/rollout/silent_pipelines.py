"""The pipelines of a job that report nothing while others do, from the proofs of its runs.

CloudWatch's queries of a group see no time series that is missing, so the reconciler counts them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from frazil.rollout.desired import Desired
from frazil.rollout.run_proof import RunProof
from frazil.rollout.state import Store
from frazil.rollout.stopped_pipelines import pipeline_names
from frazil.rollout.stored_proofs import stored_proofs

MOST_PROOFS = 100
"""How many proofs are read at most: more runs than begin within the longest time that a deployment declares."""


def silent_pipelines(desired: Desired, store: Store, *, now_ms: int, seconds: int) -> tuple[str, ...]:
    """Return the pipelines of a generation that have reported nothing for so long. None is silent before that time is over."""
    began = now_ms - seconds * 1000
    proofs = []
    for proof in islice(stored_proofs(store, desired.job, desired.run_prefix), MOST_PROOFS):
        proofs.append(proof)
        if proof.began_ms is not None and proof.began_ms < began:
            return tuple(sorted(_silent(proofs, set(pipeline_names(desired, store)) - set(desired.stopped), began)))
    return ()


def _silent(proofs: Iterable[RunProof], names: set[str], began: int) -> set[str]:
    return names - {name for proof in proofs for name, at in proof.reported.items() if at >= began}
