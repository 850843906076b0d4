"""Write modes: values with their own parameters."""

import pytest

from frazil.declaration import Append, Tombstones
from frazil.declaration.to_json import to_json
from tests.declaration.problems_of import problems_of


def test_a_mode_is_tagged_by_its_type_in_a_document():
    assert to_json(Append()) == {"type": "append", "on_tombstone": "dead_letter"}


@pytest.mark.parametrize("text", list(Tombstones))
def test_what_a_tombstone_becomes_is_named_by_its_text(text):
    assert Append(on_tombstone=str(text.value)) == Append(on_tombstone=text)


def test_an_unknown_parameter_is_refused_with_the_nearest():
    assert problems_of(lambda: Append(on_tombstones="skip")) == {
        "append.on_tombstones": "there is no such field. Did you mean on_tombstone?"
    }
