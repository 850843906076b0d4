import pytest

from frazil.declaration.strict_json import parsed
from tests.declaration.problems_of import problems_of


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"\xff\xfe{\x00", "byte 0 is not UTF-8"),
        (b'{"a":', "this is not JSON: Expecting value at line 1, column 6"),
        (b"", "this is not JSON: Expecting value at line 1, column 1"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a": ' * 5_000 + b"1" + b"}" * 5_000, "nested too deep"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "a number has 5000 digits"),
        (b'{"b": {"a": 1, "a": 1}}', "the field 'a' appears twice in one object"),
        (b'\xef\xbb\xbf{"a": 1}', "this is not JSON"),
    ],
)
def test_what_is_not_json_or_ambiguous_is_refused_with_its_place(text, told):
    assert told in problems_of(lambda: parsed(text, "orders.json"))["orders.json"]


def test_json_is_read_as_it_stands():
    assert parsed('{"a": [1, "é", true, null]}'.encode(), "x") == {"a": [1, "é", True, None]}
