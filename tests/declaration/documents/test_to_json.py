import pytest

from frazil.declaration import Earliest, Offsets, Secret, canonical, digest
from frazil.declaration.documents.to_json import to_json


def test_what_is_none_is_left_out_and_a_choice_says_which():
    assert to_json(Secret(file="/run/secrets/key")) == {"file": "/run/secrets/key"}
    assert to_json(Earliest()) == {"type": "earliest"}
    assert to_json(Offsets({10: 1, 2: 3})) == {"type": "offsets", "offsets": {"2": 3, "10": 1}}


def test_canonical_bytes_are_sorted_compact_and_utf_8_without_a_newline():
    assert canonical({"b": [1, True], "a": {"é": "🜁"}}) == '{"a":{"é":"🜁"},"b":[1,true]}'.encode()


def test_the_order_of_members_changes_no_digest():
    assert digest(canonical({"a": 1, "b": 2})) == digest(canonical({"b": 2, "a": 1}))


def test_a_digest_is_the_sha_256_in_hexadecimal():
    assert digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("value", [1.0, float("nan"), [{"a": 0.5}]])
def test_floats_have_no_canonical_text(value):
    with pytest.raises(TypeError, match="no floats"):
        canonical({"a": value})
