"""From the desired state of a job to its runs: desired state, rollout state, reconciler. Imports no Spark."""
