"""Each stack of each environment is what its golden says. A change of it is seen in a diff before it is seen in a plan."""

import pytest

from tests.stacks.synthesised import GOLDEN, GOLDENS, golden


@pytest.mark.parametrize(("environment", "what"), GOLDENS)
def test_a_stack_is_its_golden(environment: str, what: str) -> None:
    file = GOLDEN / f"{environment}-{what}.json"
    assert golden(environment, what) == file.read_text(), "if this is meant: python -m tests.stacks.synthesised"


def test_no_golden_is_left_of_a_stack_that_is_gone() -> None:
    assert {file.stem for file in GOLDEN.glob("*.json")} == {f"{name}-{what}" for name, what in GOLDENS}
