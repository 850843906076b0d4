"""A Python file of declarations: whatever it does ends with the places of its problems, and leaves Python as it was."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from frazil.declaration import InvalidDeclaration
from frazil.errors import InvalidInput
from frazil.project.python_file import Names, run

HEAD = "from frazil.declaration import *\n"
TOPIC = "topic = Topic('a b', value_format='text')"
NAME = "pipelines.topic"


def ran(folder: Path, text: str | bytes, name: str = "mine.py") -> Names:
    return run(text if isinstance(text, bytes) else (HEAD + dedent(text)).encode(), folder / name)


def told(folder: Path, text: str | bytes) -> list[str]:
    """The problems of a file, each with its place below the folder."""
    with pytest.raises(InvalidInput) as raised:
        ran(folder, text)
    return str(raised.value).replace(f"{folder}/", "").splitlines()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"from __future__ import nosuch\n", "mine.py:1: this is not Python: future feature nosuch is not defined"),
        (
            b"x = 1\nfrom __future__ import annotations\n",
            "mine.py:2: this is not Python: from __future__ imports must occur at the beginning of the file",
        ),
        (b"x = 1\nx = " + b"-" * 100_000 + b"1\n", "mine.py:2: this is not Python: an expression or a block is nested"),
        (b"x = 1" + b"+1" * 100_000 + b"\n", "mine.py:1: this is not Python: an expression or a block is nested"),
        (
            b"def f():\n    # here\n\n    return x" + b".x" * 100_000 + b"  # so deep\ny = 1",
            "mine.py:4: this is not Python: an expression or a block is nested too deep",
        ),
        (
            b"if x:\n    pass\n" + b"elif x:\n    pass\n" * 10_000,
            "mine.py: this is not Python: an expression or a block is nested too deep",
        ),
        (b"x = " + b"(" * 1000 + b")" * 1000, "mine.py:1: this is not Python: too many nested parentheses"),
        (b"x = 1\ny = \x00\n", "mine.py:2: this is not Python: source code string cannot contain null bytes"),
        ("x = 1".encode("utf-16"), "mine.py:1: this is not Python"),
        (b"x = '\xff'\n", "mine.py:1: this is not Python"),
        (b"# coding: nosuch\n", "mine.py"),
        (b"x = " + b"9" * 10_000, "mine.py:1: this is not Python: Exceeds the limit"),
        (b"return 1\n", "mine.py:1: this is not Python: 'return' outside function"),
        (b"\n\x0c\n  x = 1\n", "mine.py:3: this is not Python: unexpected indent"),
    ],
)
def test_what_is_not_python_is_told_with_its_line(tmp_path: Path, text: bytes, said: str) -> None:
    [line] = told(tmp_path, text)
    assert line.startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\nsys.exit(3)", "mine.py:3: SystemExit: 3. Correct the line"),
        ("def f():\n    f()\nf()", "mine.py:3: RecursionError: maximum recursion depth exceeded. Correct the line"),
        ("x = int('9' * 5000)", "mine.py:2: ValueError: Exceeds the limit (4300 digits) for integer string conversion"),
        ("raise GeneratorExit", "mine.py:2: GeneratorExit. Correct the line"),
        ("raise BaseException('a\\nb')", "mine.py:2: BaseException: a b. Correct the line"),
        ("class E(Exception):\n    __str__ = None\nraise E", "mine.py:4: E. Correct the line"),
        ("from .other import x", "mine.py:2: ImportError: attempted relative import with no known parent package"),
        ("import json; json.loads('{')", "mine.py:2: JSONDecodeError: Expecting property name"),
        ("exec('x = (')", "mine.py:2: SyntaxError: '(' was never closed (<string>, line 1)"),
        ("raise InvalidDeclaration(())", "mine.py:2: InvalidDeclaration. Correct the line"),
        ("Table('a.b', keep_snapshots=10**10000)", "mine.py:2: table.keep_snapshots: a number of thousands of digits"),
    ],
)
def test_an_error_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    [line] = told(tmp_path, text)
    assert line.startswith(said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x = (\n", "odd_neighbour.py:1: this is not Python: '(' was never closed. Correct the line"),
        (b"x = 1\nx = 1 / 0\n", "odd_neighbour.py:2: ZeroDivisionError: division by zero. Correct the line"),
        (b"def f():\n    return {}['a']\n", "odd_neighbour.py:2: KeyError: 'a'. Correct the line"),
        (b"import json\nf = lambda: json.loads('{')\n", "odd_neighbour.py:2: JSONDecodeError: Expecting property"),
        (b"x = \x00\n", "mine.py:2: "),
        (b"x = " + b"-" * 100_000 + b"1\n", "mine.py:2: MemoryError. Correct the line"),
        (b"import nosuch\n", "odd_neighbour.py:1: ModuleNotFoundError: No module named 'nosuch'. Correct the line"),
        (b"import sys; sys.exit()\n", "odd_neighbour.py:1: SystemExit. Correct the line"),
    ],
)
def test_an_error_of_a_neighbour_has_its_place(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "odd_neighbour.py").write_bytes(content)
    [line] = told(tmp_path, "import odd_neighbour\nx = odd_neighbour.f()")
    assert line.startswith(said)


@pytest.mark.parametrize(
    "use",
    [
        "table = Table('shop.' + topic.name)",
        "table = Table(f'{topic.name!r}')",
        "table = Table('.'.join(['shop', topic.name]))",
        "table = Table('shop.a', partition_by=(topic.name,), properties={topic.name: topic.name})",
        "tables = [Table(f'shop.{letter}') for letter in topic.name]",
        "if topic.name == 'a':\n    1 / 0",
        "import json; json.dumps(topic)",
        "try:\n    Table(topic.name + '')\nexcept Exception as error:\n    raise SystemExit(f'no: {error}')",
        "def table(of):\n    return Table('.'.join([of.name]))\nothers = [table(each) for each in (topic,)]",
        "def table():\n    return Table('.'.join([topic.name]))\nothers = [table()]",
        "raise ValueError(topic)",
        "pipelines = [Pipeline(topic=topic, table=Table('a.b'))]",
    ],
)
@pytest.mark.parametrize("between", ["\n", "; "])
def test_a_value_that_could_not_be_made_is_one_problem_however_it_is_used(
    tmp_path: Path, use: str, between: str
) -> None:
    if between == "; " and use.startswith(("if", "try", "def")):
        between, use = "\n", use.replace("topic.", "topic.copy.")
    [line] = told(tmp_path, f"{TOPIC}{between}{use}\n")
    assert line.startswith("mine.py:2: topic.name: 'a b' is not a name")


def test_a_use_in_the_statement_that_makes_it_is_no_second_problem(tmp_path: Path) -> None:
    said = "topic.name: 'a b' is not a name that Kafka allows for a topic. Use 1 to 249 of a-z, A-Z, 0-9, . _ and -, and not . or .. alone"
    text = """
        table = Table("shop." + Topic("a b", value_format="text").name)
        other = Table(", ".join([Topic("a b", value_format="text").name]))
        last = 1 / 0
    """
    last = "mine.py:5: ZeroDivisionError: division by zero. Correct the line"
    assert told(tmp_path, text) == [f"mine.py:3: {said}", f"mine.py:4: {said}", last]


@pytest.mark.parametrize(
    "text",
    [
        "from none_of_mine import *\nx = orders\ny = Table(x)",
        "import none_of_mine.a as b\nx = b.orders",
        "match 1 / 0:\n    case [a, *rest]: ...\n    case {'a': 1, **others}: ...\n    case 1 as one: ...\n"
        "x = a\nx = rest\nx = others\nx = one",
        "for a, (b, *c) in 1 / 0: ...\nx = a + b + c",
        "with 1 / 0 as (a, b): ...\nx = a + b",
        "a = b = [c := 1 / 0]\nx = a\nx = b\nx = c",
        "class A:\n    x = 1 / 0\ny = A()",
        "def f():\n    return x\nx = 1 / 0\ny = f()",
        "x = 1 / 0\nx += 1\ndel x",
        "x: int = 1 / 0\nprint(f'{x}')",
    ],
)
def test_a_name_that_got_no_value_is_no_second_problem(tmp_path: Path, text: str) -> None:
    assert len(told(tmp_path, text)) == 1


def test_a_neighbour_that_holds_a_value_with_problems_in_a_list_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "list_of_mine.py").write_text(f"{HEAD}{TOPIC}\ntopics = [topic]\ndel topic\n")
    text = "from list_of_mine import topics\npipelines = [Pipeline(topic=topics[0], table=Table('a.b'))]"
    assert told(tmp_path, text) == told(tmp_path, text)
    (tmp_path / "list_of_mine.py").write_text(f"{HEAD}topics = [Topic('a', value_format='text')]\n")
    assert len(ran(tmp_path, text).values["pipelines"]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "sys.path.pop(0)",
        "sys.path = ['.']",
        "sys.path.clear()",
        "sys.path.append('/lib')",
        "sys.modules.pop(__name__)",
        "os.chdir('/')",
        "sys.modules['none_of_mine'] = None",
        "sys.modules['none_of_mine'] = None; 1 / 0",
    ],
)
def test_paths_and_modules_are_afterwards_as_before(tmp_path: Path, text: str) -> None:
    before = (sys.path, list(sys.path), Path.cwd(), "frazil_declarations_mine" in sys.modules)
    with suppress(InvalidDeclaration):
        ran(tmp_path, f"import os, sys; {text}")
    assert (sys.path, list(sys.path), Path.cwd(), "frazil_declarations_mine" in sys.modules) == before
    assert sys.path is before[0]
    sys.modules.pop("none_of_mine", None)


def test_what_a_file_prints_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(tmp_path, "print('so far')")
    assert capsys.readouterr() == ("", "so far\n")


@pytest.mark.parametrize(
    "text",
    [
        "sys.stdout = None",
        "sys.stderr = None",
        "sys.stdout = io.TextIOWrapper(sys.stdout.buffer)",
        "sys.stderr = io.TextIOWrapper(sys.stderr.buffer, 'ascii')",
        "sys.stdout = sys.stderr = open(os.devnull, 'w')",
    ],
)
def test_streams_that_a_file_replaces_are_afterwards_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    before = sys.stdout, sys.stderr
    ran(tmp_path, f"import io, os, sys; {text}")
    gc.collect()
    assert (sys.stdout, sys.stderr) == before
    print("a result")
    print("an error", file=sys.stderr)
    assert capsys.readouterr() == ("a result\n", "an error\n")


def test_the_future_of_a_file_is_that_of_all_its_statements(tmp_path: Path) -> None:
    names = ran(tmp_path, b"from __future__ import annotations\ndef f(x: nosuch): ...\n")
    assert names.values["f"].__annotations__ == {"x": "nosuch"}


def test_the_place_of_a_value_is_its_line(tmp_path: Path) -> None:
    (tmp_path / "place_of_mine.py").write_text(f"{HEAD}\ntopic = Topic('a', value_format='text')\n")
    names = ran(tmp_path, "from place_of_mine import topic\nother = Topic(\n    'b', value_format='text')\nx = 1")
    assert names.place(names.values["topic"]) == f"{tmp_path}/place_of_mine.py:3"
    assert names.place(names.values["other"]) == f"{tmp_path}/mine.py:3"
    assert names.place(names.values["x"]) == f"{tmp_path}/mine.py"


def test_a_folder_that_was_deleted_is_no_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    os.rmdir(gone)
    assert told(tmp_path, "x = 1 / 0") == ["mine.py:2: ZeroDivisionError: division by zero. Correct the line"]
