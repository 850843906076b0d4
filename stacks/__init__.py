"""The deployments: environments, their stacks, and the pipelines that they run (`pipelines.py` is an example)."""
