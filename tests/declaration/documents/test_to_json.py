import pytest

from frazil.declaration import Earliest, Offsets, Secret, canonical
from frazil.declaration.documents.to_json import to_json


def test_what_is_none_is_left_out_and_a_choice_says_which():
    assert to_json(Secret(file="/run/secrets/key")) == {"file": "/run/secrets/key"}
    assert to_json(Earliest()) == {"type": "earliest"}
    assert to_json(Offsets({10: 1, 2: 3})) == {"type": "offsets", "offsets": {"2": 3, "10": 1}}


def test_canonical_bytes_are_sorted_compact_and_utf_8_without_a_newline():
    assert canonical({"b": [1, True], "a": {"é": "🜁"}}) == '{"a":{"é":"🜁"},"b":[1,true]}'.encode()


@pytest.mark.parametrize("value", [1.0, float("nan"), [{"a": 0.5}]])
def test_floats_have_no_canonical_text(value):
    with pytest.raises(TypeError, match="no floats"):
        canonical({"a": value})
