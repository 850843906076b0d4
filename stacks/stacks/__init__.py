"""The stacks of an environment: each takes a deployment and outputs of earlier stacks, and gives outputs."""
