"""Types of resources that rules speak of: each exists, or a rule is blind without a word."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

from policies.resources import HOLDS_DATA

NOT_TYPES = {"confluent_provider", "confluent_trust", "aws_glue"}  # documents of ours, and a block


def types(root: Path) -> set[str]:
    """All that is spelled like a type in the rules' sources."""
    texts = [file.read_text() for file in (root / "policies").rglob("*.py")]
    return {name for text in texts for name in re.findall(r"\"((?:aws|confluent)_[a-z0-9_]+)\"", text)} - NOT_TYPES


def offered(root: Path) -> set[str]:
    """What the providers have, by the bindings' modules and by the schema that is kept here."""
    found = importlib.util.find_spec("cdktf_cdktf_provider_aws")
    assert found is not None
    folders = [Path(place) for place in found.submodule_search_locations or ()]
    aws = {f"aws_{module.name}" for folder in folders for module in folder.iterdir() if module.is_dir()}
    schema = json.loads((root / "infra" / "provider_schemas" / "confluent.json").read_text())
    return aws | {*schema["resource_schemas"], *schema["data_source_schemas"]}


def test_every_type_that_a_rule_names_exists(root: Path) -> None:
    named = types(root)
    assert len(named) > 25
    assert set(HOLDS_DATA) <= named
    assert named - offered(root) == set()
