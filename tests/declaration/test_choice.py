"""The nearest known name of a misspelt one."""

import pytest

from frazil.declaration.choice import unknown


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
