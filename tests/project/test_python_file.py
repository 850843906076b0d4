"""A Python file of declarations: its first problem has a line, and the loader restores paths and streams."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from frazil.errors import InvalidInput
from frazil.project.python_file import Names, run

HEAD = "from frazil.declaration import *\n"


def ran(folder: Path, text: str | bytes) -> Names:
    file = folder / "mine.py"
    file.write_bytes(text if isinstance(text, bytes) else (HEAD + dedent(text)).encode())
    return run(file)


def told(folder: Path, text: str | bytes) -> list[str]:
    """The problems of a file, each with its place below the folder."""
    with pytest.raises(InvalidInput) as raised:
        ran(folder, text)
    return str(raised.value).replace(f"{folder}/", "").splitlines()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"x = (\n", "mine.py:1: this is not Python: '(' was never closed"),
        (b"from __future__ import nosuch\n", "mine.py:1: this is not Python: future feature nosuch is not defined"),
        (b"x = '\xff'\n", "mine.py:1: this is not Python: (unicode error)"),
        (b"x = 1\ny = \x00\n", "mine.py: this is not Python: source code string cannot contain null bytes"),
        (b"x = " + b"-" * 100_000 + b"1\n", "mine.py: MemoryError"),
        (b"return 1\n", "mine.py:1: this is not Python: 'return' outside function"),
    ],
)
def test_a_file_that_is_not_python_is_reported(tmp_path: Path, text: bytes, said: str) -> None:
    [line] = told(tmp_path, text)
    assert line.startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\nsys.exit(3)", "mine.py:3: SystemExit: 3. Correct the line"),
        ("def f():\n    f()\nf()", "mine.py:3: RecursionError: maximum recursion depth exceeded. Correct the line"),
        ("raise BaseException('a\\nb')", "mine.py:2: BaseException: a b. Correct the line"),
        ("import json; json.loads('{')", "mine.py:2: JSONDecodeError: Expecting property name"),
        ("raise InvalidDeclaration(())", "mine.py:2: InvalidDeclaration. Correct the line"),
        ("x = 1\nErrorMode.SKPI", "mine.py:3: AttributeError: there is no such member. Did you mean SKIP?"),
        ("Table('a.b', format_version=10**10000)", "mine.py:2: table.format_version: a number of thousands of digits"),
        ("Topic('a', 'avro')", "mine.py:2: topic.value: the field is missing"),
    ],
)
def test_an_error_is_reported_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    [line] = told(tmp_path, text)
    assert line.startswith(said)


def test_all_problems_of_the_first_invalid_object_are_reported(tmp_path: Path) -> None:
    text = """
        def table(name):
            return Table(name, format_version=0, sort_by=["x"], kep_days=1)
        orders = Pipeline(
            topic=Topic("orders", value="text"),
            table=table("Shop"),
        )
        other = Topic("a b", value="text")
    """
    assert [line.partition(": ")[2].partition(":")[0] for line in told(tmp_path, text)] == [
        "table.kep_days",
        "table.sort_by",
        "table.identifier",
        "table.format_version",
    ]
    assert {line.partition(": ")[0] for line in told(tmp_path, text)} == {"mine.py:4"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x = (\n", "odd_neighbour.py:1: this is not Python: '(' was never closed. Correct the line"),
        (b"x = 1\nx = 1 / 0\n", "odd_neighbour.py:2: ZeroDivisionError: division by zero. Correct the line"),
        (b"def f():\n    return {}['a']\n", "odd_neighbour.py:2: KeyError: 'a'. Correct the line"),
        (b"import json\nf = lambda: json.loads('{')\n", "odd_neighbour.py:2: JSONDecodeError: Expecting property"),
        (b"import nosuch\n", "odd_neighbour.py:1: ModuleNotFoundError: No module named 'nosuch'. Correct the line"),
    ],
)
def test_an_error_of_a_neighbour_has_its_place(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "odd_neighbour.py").write_bytes(content)
    sys.modules.pop("odd_neighbour", None)
    [line] = told(tmp_path, "import odd_neighbour\nx = odd_neighbour.f()")
    assert line.startswith(said)
    sys.modules.pop("odd_neighbour", None)


def test_python_finds_neighbours_only_while_the_file_runs(tmp_path: Path) -> None:
    before = list(sys.path)
    ran(tmp_path, "import sys; sys.path.append('/lib')")
    assert sys.path == before


def test_standard_output_of_a_file_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(tmp_path, "print('so far')")
    print("a result")
    assert capsys.readouterr() == ("a result\n", "so far\n")
