"""What a changed field of a topic does."""

import pytest

from frazil.declaration import SchemaFile
from frazil.declaration.topic_effects import TOPIC_FIELDS


@pytest.mark.parametrize("name", ["topic.schema", "topic.key_schema"])
def test_a_registry_instead_of_a_declared_schema_is_dangerous(name: str) -> None:
    file, other = (SchemaFile(file="o.avsc", content=text) for text in ('"int"', '"long"'))
    effect = TOPIC_FIELDS[name]
    assert effect.is_dangerous(None, (file,))
    assert effect.is_dangerous((file,), None)
    assert not effect.is_dangerous((file,), (other,))  # the review compares the schemas themselves
    assert "are read in the other form" in effect.what
