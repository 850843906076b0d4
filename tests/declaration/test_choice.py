"""A misspelt member is answered with the nearest one."""

import copy
import pickle

import pytest

from frazil.declaration import ErrorMode, ValueFormat
from frazil.declaration.choice import unknown
from frazil.declaration.declared import Invalid, collecting


def test_a_member_that_does_not_exist_is_an_attribute_error_with_the_nearest():
    with pytest.raises(AttributeError, match=r"ValueFormat\.AVOR: there is no such member\. Did you mean AVRO\?"):
        _ = ValueFormat.AVOR  # type: ignore[attr-defined]
    assert not hasattr(ErrorMode, "_private")
    assert getattr(ErrorMode, "NONE", None) is None


def test_where_problems_are_collected_it_is_an_invalid_value():
    with collecting(__file__) as notes:
        assert isinstance(ValueFormat.AVOR, Invalid)  # type: ignore[attr-defined]
    [located] = notes.taken()
    assert str(located.problem) == "value_format.AVOR: there is no such member. Did you mean AVRO?"


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: ValueFormat("avor"), ValueError, "ValueFormat.avor: there is no such value. Did you mean avro?"),
        (lambda: ValueFormat["AVOR"], KeyError, "ValueFormat.AVOR: there is no such member. Did you mean AVRO?"),
        (lambda: ValueFormat(3), ValueError, "ValueFormat.3: there is no such value. Remove it; the values are avro,"),
        (lambda: ValueFormat(["a b"]), ValueError, "ValueFormat[\"['a b']\"]: there is no such value"),
        (lambda: ValueFormat["a b"], KeyError, "ValueFormat['a b']: there is no such member"),
    ],
)
def test_so_is_a_member_by_its_value_or_name(make, error, said):
    with pytest.raises(error) as raised:
        make()
    assert raised.value.args[0].startswith(said)
    with collecting(__file__) as notes:
        assert isinstance(make(), Invalid)
    [located] = notes.taken()
    assert str(located.problem).startswith(said.replace("ValueFormat", "value_format"))


def test_a_member_is_found_by_its_value_and_name():
    assert ValueFormat("avro") is ValueFormat["AVRO"] is ValueFormat(ValueFormat.AVRO) is ValueFormat.AVRO


def test_members_are_copied_and_pickled():
    assert copy.deepcopy(ValueFormat.AVRO) is pickle.loads(pickle.dumps(ValueFormat.AVRO)) is ValueFormat.AVRO


@pytest.mark.parametrize(
    ("name", "do"),
    [
        ("value_fromat", "Did you mean value_format?"),
        ("valueFormat", "Did you mean value_format?"),
        ("NAME", "Did you mean name?"),
        ("zzz", "Remove it; the fields are name, value_format"),
        ("", "Remove it; the fields are name, value_format"),
        (3, "Remove it; the fields are name, value_format"),
    ],
)
def test_the_nearest_known_name_is_offered(name, do):
    assert unknown(name, ["name", "value_format"]) == ("there is no such field", do)


def test_letters_that_only_look_alike_are_shown_by_their_number():
    assert unknown("n\u0430me", ["name"]).what == (
        r"there is no such field; 'n\u0430me' has letters beyond a-z that look like others"
    )
