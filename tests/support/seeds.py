"""The randomness in tests: none in those that every change must pass; in long ones a printed seed that can be given again."""

from __future__ import annotations

import os
import random

import hypothesis
import pytest
from hypothesis import settings

VARIABLE = "FRAZIL_TEST_SEED"
"""The environment variable that gives the seed of the long tests; without it they draw one."""

EXAMPLES = {"same": 30, "drawn": 300}
"""Examples of each property, where a test does not say."""

settings.register_profile("same", derandomize=True, database=None, deadline=None, max_examples=EXAMPLES["same"])
settings.register_profile("drawn", database=None, deadline=None, max_examples=EXAMPLES["drawn"], print_blob=True)


def are_long(config: pytest.Config) -> bool:
    """Return whether these are the long tests."""
    return config.getoption("markexpr") == "long"


def configure(config: pytest.Config) -> None:
    """Choose the profile of Hypothesis and the seed; processes that pytest starts take the same one."""
    if are_long(config):
        os.environ.setdefault(VARIABLE, str(random.SystemRandom().randrange(1 << 32)))
        hypothesis.core.global_force_seed = seed(config)
    settings.load_profile("drawn" if are_long(config) else "same")


def seed(config: pytest.Config) -> int:
    """Return the seed of this run."""
    return int(os.environ[VARIABLE]) if are_long(config) else 0


def said(config: pytest.Config) -> str:
    """Return how to repeat this run."""
    return f"seed: {VARIABLE}={seed(config)}" if are_long(config) else "seed: always the same"


def is_property(item: pytest.Item) -> bool:
    """Return whether Hypothesis creates the examples of a test."""
    return bool(getattr(getattr(item, "obj", None), "is_hypothesis_test", False))
