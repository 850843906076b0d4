"""What tests of stacks share: Terraform with the stand-in, and one cloud of stand-ins with the foundation deployed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.standin import Terraform, terraform_with_stand_in
from tests.support.standin_cloud import Cloud, cloud


@pytest.fixture(scope="session")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Terraform:
    """Terraform, with the stand-in for Confluent."""
    return terraform_with_stand_in(tmp_path_factory.mktemp("terraform"))


@pytest.fixture(scope="session")
def founded(root: Path, tmp_path_factory: pytest.TempPathFactory, terraform: Terraform) -> Iterator[Cloud]:
    """A cloud in which the foundation is deployed, and nothing else."""
    with cloud(root, tmp_path_factory.mktemp("cloud"), terraform) as made:
        made.declare()
        made.apply("foundation")
        yield made
