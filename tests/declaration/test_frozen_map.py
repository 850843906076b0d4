import copy
import pickle

import pytest

from frazil.declaration.frozen_map import FrozenMap


def test_it_equals_any_mapping_of_the_same_items():
    assert FrozenMap({"b": 1, "a": 2}) == {"a": 2, "b": 1}
    assert FrozenMap({"a": 1}) != {"a": 2}


def test_order_of_writing_changes_neither_hash_nor_text():
    one, other = FrozenMap({"b": 1, "a": 2}), FrozenMap({"a": 2, "b": 1})
    assert hash(one) == hash(other)
    assert repr(one) == repr(other) == "{'a': 2, 'b': 1}"


def test_it_does_not_change_with_the_mapping_it_was_made_of():
    source = {"a": 1}
    frozen = FrozenMap(source)
    source["a"] = 2
    assert frozen["a"] == 1
    with pytest.raises(TypeError):
        frozen["a"] = 3  # type: ignore[index]


def test_it_is_pickled_and_copied():
    frozen = FrozenMap({1: 2})
    assert pickle.loads(pickle.dumps(frozen)) == copy.deepcopy(frozen) == frozen
