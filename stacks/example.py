"""The example as a deployment: its pipelines and its topics. `FRAZIL_PIPELINES=stacks/example.py` chooses it."""

from stacks.pipelines import pipelines
from stacks.topics import topics

__all__ = ["pipelines", "topics"]
