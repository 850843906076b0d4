"""Seeded JSON for tests: row types, bodies that were written for them well or badly, and bodies that were damaged."""

from __future__ import annotations

import json
import random

from frazil.schemas.types import Field, Kind, ListOf, Primitive, Struct, Type

KINDS = (Kind.BOOLEAN, Kind.INT, Kind.LONG, Kind.DOUBLE, Kind.STRING, Kind.DATE, Kind.TIMESTAMPTZ)
NAMES = ("a", "bc", "a.b", "", "😀", 'q"', "back\\", "v", "e", "corrupt", "_decoded", "ÿ", "with space", "null", "x\0")
NUMBERS = (
    *("0", "-0", "-0.0", "0.0", "1", "-1", "7.0", "1e3", "1E+2", "1e-7", "0.1", "2.5e-3", "123456789.123456789"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808"),
    *(
        "-9223372036854775808",
        "-9223372036854775809",
        "9007199254740993",
        "4.9e-324",
        "2.4e-324",
        "1e-400",
        "1e-999999",
    ),
    *("2.2250738585072011e-308", "1.7976931348623157e308", "1.7976931348623159e308", "1e308", "1e309", "1e400"),
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "Inf",
        "-Inf",
        "INF",
        "-NaN",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "0x10",
        "1_0",
        "- 1",
    ),
    *("9" * 400, "0." + "1" * 400, "9" * 400 + ".5", "1" * 20 + "e-15", "9" * 999, "9" * 1000, "9" * 1001),
    *("0." + "3" * 1001, "1e" + "0" * 1000 + "1", "8.41", "179.76931348623157e306", "0.30000000000000004"),
)
STRINGS = (
    *('""', '"a"', '"NaN"', '"Inf"', '"1"', '"true"', '"null"', '"é😀"', r'"\ud83d\ude00"', r'"\u0000"', r'"a\u0000b"'),
    *(
        r'"\ud800"',
        r'"\udc00"',
        r'"\ud800\ud800"',
        r'"\ud83d"',
        r'"\uD83Dx"',
        r'"\u00ff"',
        r'"\"\\\/\b\f\n\r\t"',
        r'"\x"',
    ),
    *(r'"\u12"', '"a\tb"', '"a\nb"', '"\x7f"', '"\u2028"', "'a'", '"}{"', '"},{"', '"Inf,"', '"-NaN}"', '"-0,"', "a"),
)
TIMES = (
    *('"2024-02-29"', '"2023-02-29"', '"2024-2-9"', '"0000-01-01"', '"0001-01-01"', '"9999-12-31"', '"1582-10-10"'),
    *('"10000-01-01"', '"-001-01-01"', '"2024-02-29 "', '"2024-02-29\\n"', '"1900-01-01"', '"٢٠٢٤-٠٢-٢٩"'),
    *(
        f'"{day}{between}{time}{zone}"'
        for day in ("2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31", "2023-02-29", "1582-10-10")
        for between in ("T", " ", "t")
        for time in (
            "10:11:12",
            "23:59:60",
            "24:00:00",
            "00:00:00.1",
            "23:59:59.999999",
            "10:11:12.1234567",
            "10:11",
            "1:2:3",
        )
        for zone in (
            "Z",
            "z",
            "+01:00",
            "-0130",
            "+18:00",
            "+18:01",
            "+17:59",
            "-19:00",
            "+25:00",
            "+01",
            "+01:60",
            "",
            " Z",
            "Z\\n",
        )
    ),
)
OTHERS = (
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "[1]",
    '{"a":1}',
    "[null]",
    "[[]]",
    "tru",
    "nul",
    "True",
    "",
    "undefined",
    "{",
    "]",
)
PIECES = (
    *(
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\\",
        b"\n",
        b"\0",
        b" ",
        b"\t",
        b"\r",
        b"\x0b",
        b"\xa0",
        b"-0",
        b"NaN",
        b"Inf",
    ),
    *(
        b"\xff",
        b"\xc3",
        b"\xa9",
        b"\xed\xa0\x80",
        b"\xed\xb0\x80",
        b"\xc0\x80",
        b"\xf4\x90\x80\x80",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
    ),
    *(
        b"}{",
        b"},{",
        b"}\n{",
        b"]}",
        b'{"\xff":true}',
        b'"\xff":true,',
        rb'"\u00ff":true,',
        b"/*x*/",
        b"//",
        b"'",
        b"+",
        b"0",
        b"e5",
    ),
    *(
        b"\\ud800",
        b"\\udc00",
        b"\\u0000",
        b"null",
        b"1",
        b".",
        b"-",
        b",,",
        b'"a":1,',
        b"[" * 1001,
        b"[" * 600 + b"]" * 600,
    ),
)


def row_type(dice: random.Random, depth: int = 0) -> Struct:
    """A row type of what `json_batches` reads; no two properties differ in case only."""
    names = dice.sample(NAMES, dice.randint(1, 6))
    return Struct(tuple(Field(f"c{i}", _type(dice, depth), source=name) for i, name in enumerate(names)))


def _type(dice: random.Random, depth: int) -> Type:
    made = dice.random()
    if depth < 3 and made < 0.2:
        return row_type(dice, depth + 1)
    if depth < 3 and made < 0.4:
        return ListOf(_type(dice, depth + 1))
    return Primitive(dice.choice(KINDS))


def body(dice: random.Random, of: Type, *, wrong: float = 0.02) -> bytes:
    """A value of the type; of its parts, and theirs, `wrong` is the share that anything may be."""
    return _value(dice, of, wrong).encode()


def _value(dice: random.Random, of: Type, wrong: float) -> str:
    if dice.random() < wrong:
        return dice.choice(dice.choice((NUMBERS, STRINGS, TIMES, OTHERS)))
    if dice.random() < 0.1 and wrong < 1:
        return "null" if not isinstance(of, Struct) or dice.random() < 0.2 else "{}"
    match of:
        case Struct(fields):
            named = [(f.source, _value(dice, f.type, wrong)) for f in fields if dice.random() < 0.9]
            while dice.random() < 0.2:
                name = dice.choice((*NAMES, *(f.source.upper() for f in fields)))
                named.append((name, _value(dice, Primitive(dice.choice(KINDS)), 0.5)))
            if dice.random() < 0.7:  # names once
                named = list(dict(named).items())
            dice.shuffle(named)
            return (
                "{"
                + ",".join(f"{_space(dice)}{_name(dice, n)}{_space(dice)}:{_space(dice)}{v}" for n, v in named)
                + "}"
            )
        case ListOf(element):
            return "[" + ",".join(_space(dice) + _value(dice, element, wrong) for _ in range(dice.randint(0, 3))) + "]"
        case Primitive(kind):
            return _scalar(dice, kind)
        case _:
            raise TypeError(of)


def _name(dice: random.Random, name: str) -> str:
    return json.dumps(name, ensure_ascii=dice.random() < 0.5)


def _space(dice: random.Random) -> str:
    return dice.choice((" ", "\n", "\r\n", "\t")) if dice.random() < 0.05 else ""


def _scalar(dice: random.Random, kind: Kind) -> str:
    match kind:
        case Kind.BOOLEAN:
            return dice.choice(("true", "false"))
        case Kind.INT | Kind.LONG:
            return str(dice.randint(-(1 << 31), (1 << 31) - 1))
        case Kind.DOUBLE:
            return dice.choice(
                (repr(dice.uniform(-1e3, 1e3)), repr(dice.gauss(0, 1) * 10.0 ** dice.randint(-300, 300)))
            )
        case Kind.STRING:
            return dice.choice(('"a"', '""', '"é😀"', r'"\u00e9"', '"a long text, with a comma"', '"{}"'))
        case Kind.DATE:
            return f'"{dice.randint(1, 9999):04d}-{dice.randint(1, 12):02d}-{dice.randint(1, 28):02d}"'
        case _:
            day = f"{dice.randint(1, 9999):04d}-{dice.randint(1, 12):02d}-{dice.randint(1, 28):02d}"
            time = f"{dice.randint(0, 23):02d}:{dice.randint(0, 59):02d}:{dice.randint(0, 59):02d}"
            return f'"{day}T{time}{dice.choice(("", ".5", ".123", ".000001"))}{dice.choice(("Z", "+02:00", "-0930"))}"'


def damaged(dice: random.Random, body: bytes, other: bytes) -> bytes:
    """The body after one to three changes of its bytes; some are pieces of another."""
    for _ in range(dice.randint(1, 3)):
        place, end = sorted((dice.randint(0, len(body)), dice.randint(0, len(body))))
        match dice.randrange(7):
            case 0:
                body = body[:place] + body[min(end, place + 3) :]
            case 1:
                body = body[:place] + dice.choice(PIECES) + body[place:]
            case 2:
                body = body[:place] + dice.choice(PIECES) + body[place + 1 :]
            case 3:
                body = body[:place] + bytes([dice.randrange(256)]) + body[place + 1 :]
            case 4:
                body = body[:place] if dice.random() < 0.5 else body[place:]
            case 5:
                body = body + dice.choice((b"", b",", b"\n", b" ", b"\0")) + other
            case _:
                body = body[:place] + other[dice.randint(0, len(other)) :]
    return body
