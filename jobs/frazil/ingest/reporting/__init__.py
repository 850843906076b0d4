"""Events, metrics and proofs of a run."""
