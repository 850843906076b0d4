"""Check the prose of pages, docstrings, comments, help texts and error texts.

`python tests/test_prose.py [FILE or FOLDER …]` prints the problems.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = (
    ".ci",
    ".github",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "bench",
    "docs",
    "infra",
    "jobs",
    "policies",
    "stacks",
    "tests/demo",
    "tests/standin",
    "tests/support",
)
BANNED = re.compile(
    r"(?<![\w-])(tell|tells|telling|told|stand(?!-ins?\b)|stands|standing|stood|mend|mends|mended|mending|anew"
    r"|whole(?!\s+numbers?\b)|nobody|somebody|ours|for\s+ever|at\s+work|(?:is|are|was|were)\s+away"
    r"|(?:become|becomes|became|becoming)\s+of)\b",
    re.IGNORECASE,
)
BANNED_IN_NAMES = re.compile(
    r"(?:^|_)(tell|tells|told|stand|stands|standing|mend|mended|anew|whole|nobody|somebody|ours)(?=_|$)"
)
# First words of a docstring that are no imperative. Words in -s and -ed are found by their ending.
NO_IMPERATIVE = """
A After All An And Another Any As At Because Before Both But By Canonical Each Either Every Everybody Everyone Everything
For Four From Full How If In Into It Java Kafka Like Manifest Many Most Neither New No None Not Nothing Now Of On One
Only Or Other Per Same Schemaless Several So Some Something Spark Such Tableflow Text That The Their Then There These
They Those Three To True Two Under Until What When Where Whether Which While Who Whoever Whom Whose Why With Without
"""
NOT_IMPERATIVE = frozenset(NO_IMPERATIVE.split())
IMPERATIVE_IN_S_OR_ED = {"Canvass", "Embed", "Exceed", "Feed", "Focus", "Need", "Proceed", "Seed", "Speed", "Succeed"}


class Piece(NamedTuple):
    """A piece of prose and the line that it starts at."""

    line: int
    text: str


class Problem(NamedTuple):
    """A place that breaks a rule."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def _blank(found: re.Match[str]) -> str:
    """Return as many line ends as the match has, so that lines keep their numbers."""
    return " _ " + "\n" * found[0].count("\n")


def without_values(text: str) -> str:
    """Blank code in backticks, targets of links, and quoted single words: they are names and values."""
    text = re.sub(r"``[^`]+``|`[^`]+`", _blank, text)
    text = re.sub(r"\]\([^)\s]*\)", _blank, text)
    return re.sub(r"\"[^\s\"]+\"|(?<!\w)'[^\s']+'(?!\w)", _blank, text)


def markdown(text: str) -> list[Piece]:
    """Return a page without its code blocks, as one piece."""
    text = re.sub(r"(?ms)^ *(`{3,}|~{3,}).*?^ *\1 *$", _blank, text)
    text = re.sub(r"(?m)(?<=\n\n)(?:    .*\n)+", _blank, text)
    return [Piece(1, text)]


def comments(text: str) -> list[Piece]:
    """Return the comments of a Makefile, a workflow, or TOML."""
    lines = enumerate(text.splitlines(), start=1)
    return [Piece(line, found[1]) for line, content in lines if (found := re.search(r"(?:^|\s)#+ (.*)", content))]


def _python_comments(text: str) -> Iterator[Piece]:
    """Yield comments; those on consecutive lines are one piece."""
    held: Piece | None = None
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, words = token.start[0], token.string.lstrip("# ")
        if held and line == last + 1:
            held = Piece(held.line, f"{held.text}\n{words}")
        else:
            if held:
                yield held
            held = Piece(line, words)
        last = line
    if held:
        yield held


def _strings(nodes: list[ast.AST]) -> Iterator[Piece]:
    """Yield docstrings, and string literals of two words and more: help texts and error texts are among them."""
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "_" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        else:
            continue
        if " " in text.strip():
            yield Piece(node.lineno, text)


@lru_cache(maxsize=1)
def _nodes(text: str) -> list[ast.AST]:
    """Parse a module once for both checks; its first node is the module."""
    return list(ast.walk(ast.parse(text)))


def python(text: str) -> list[Piece]:
    """Return the docstrings and texts of a module, and its comments unless no word in the module is banned: they are slow to read."""
    strings = list(_strings(_nodes(text)))
    has_banned = BANNED.search(re.sub(r"\s*\n\s*#+ ?", " ", text))
    return [*strings, *_python_comments(text)] if has_banned else strings


def prose(file: Path) -> list[Piece]:
    """Return the prose of a file; no piece for a kind of file that has none."""
    readers = {".md": markdown, ".py": python, ".toml": comments, ".yml": comments, "": comments}
    reader = readers.get(file.suffix)
    return reader(file.read_text()) if reader else []


def banned_words(file: str, pieces: list[Piece]) -> list[Problem]:
    found = []
    for piece in pieces:
        text = without_values(piece.text)
        for match in BANNED.finditer(text):
            line = piece.line + text.count("\n", 0, match.start())
            found.append(Problem(file, line, f'"{" ".join(match[0].split())}" is a banned word (house rule 2)'))
    return sorted(found)


def banned_names(file: str) -> list[Problem]:
    words = [match[1] for part in Path(file).with_suffix("").parts for match in BANNED_IN_NAMES.finditer(part)]
    return [Problem(file, 1, f'"{word}" is a banned word in the name of a module') for word in words]


def is_imperative(docstring: str) -> bool:
    """Judge the first word: a capitalised plain word that is on no list and ends in neither -s nor -ed."""
    word = docstring.split()[0].rstrip(",;:.")
    if not re.fullmatch(r"[A-Z][a-z]+(?:-[a-z]+)?", word) or word in NOT_IMPERATIVE:
        return False
    return word in IMPERATIVE_IN_S_OR_ED or word.endswith("ss") or not word.endswith(("s", "ed"))


def _is_noun_by_rule(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return if a docstring may be a noun phrase: of a property, which reads as an attribute, and of a dunder method."""
    decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
    return "property" in decorators or (node.name.startswith("__") and node.name.endswith("__"))


def first_words(file: str, text: str) -> list[Problem]:
    """Find functions whose docstring starts with no imperative verb, and modules whose docstring starts with the file's name."""
    module, *nodes = _nodes(text)
    assert isinstance(module, ast.Module)
    found = []
    if (ast.get_docstring(module) or "").startswith((f"{Path(file).stem}:", f"{Path(file).name}:")):
        found.append(Problem(file, 1, "the module's docstring starts with its file name (house rule 4)"))
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_noun_by_rule(node):
            docstring = ast.get_docstring(node)
            if docstring and not is_imperative(docstring):
                word = docstring.split()[0]
                found.append(
                    Problem(file, node.body[0].lineno, f'{node.name}: "{word}" is no imperative verb (house rule 4)')
                )
    return sorted(found)


def files(room: str) -> list[Path]:
    path = ROOT / room
    return (
        sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        if path.is_dir()
        else [path]
    )


def problems_of(room: str) -> list[Problem]:
    """Return all problems of a room: banned words in prose and names, and first words of docstrings."""
    found = []
    for file in files(room):
        name = file.relative_to(ROOT).as_posix()
        if file.suffix == ".py":
            found += first_words(name, file.read_text())
            found += banned_names(name)
        found += banned_words(name, prose(file))
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_prose_is_plain(room: str) -> None:
    """Ban words and check first words. Functions start with an imperative verb (PEP 257).

    Exempt are dunder methods, properties (PEP 257 treats a property as an attribute), and tests, whose names are their documentation.
    """
    assert "\n".join(map(str, problems_of(room))) == ""


# The checker itself


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("The drift is mended.", "mended"),
        ("What will become\nof it", "become of"),
        ("Somebody's bucket", "Somebody"),
        ("A Glue that is away", "is away"),
    ],
)
def test_a_banned_word_is_found(sentence: str, word: str) -> None:
    quoted = f'"{" ".join(word.split())}" is a banned word'
    for pieces in (
        markdown(f"# Title\n\n{sentence}\n"),
        python(f'"""Say it.\n\n{sentence}"""\n'),
        python(f"x = 1\n\nraise ValueError({sentence!r})\n"),
    ):
        (problem,) = banned_words("page", pieces)
        assert problem.what.startswith(quoted)
        assert problem.line >= 3
    assert len(banned_words("page", python("".join(f"# {line}\n" for line in sentence.splitlines())))) == 1


def test_a_problem_names_file_line_and_word() -> None:
    (problem,) = banned_words("docs/a.md", markdown("Plain.\n\n```\ntold\n```\n\nIt is\ntold.\n"))
    assert str(problem).startswith('docs/a.md:8: "told" is a banned word')


@pytest.mark.parametrize(
    "text",
    [
        "A stand-in for AWS, two stand-ins, a whole number, a standby, standalone, recommend, understand, yours.",
        "The result was `told`, and ``for ever`` is an option.",
        'The status was "told" once.',
        "See [the page](whole/page.md).",
        "Text\n\n```json\nnobody told\n```\n",
        "Text\n\n    frazil told\n    nobody\n",
        "- item\n\n  ```\n  told\n  ```\n",
    ],
)
def test_code_names_and_quoted_values_are_no_prose(text: str) -> None:
    assert banned_words("page.md", markdown(text)) == []


def test_identifiers_and_values_of_code_are_no_prose() -> None:
    assert (
        banned_words(
            "m.py", python('told = {"told": "nobody", "x": f"{told}"}\nlog("was `told` then", \'x "told" y\')\n')
        )
        == []
    )


def test_texts_around_the_values_of_an_f_string_are_prose() -> None:
    assert len(banned_words("m.py", python('raise E(f"{name} is told " f"by {x}")\n'))) == 1


def test_a_banned_word_in_the_name_of_a_module_is_found() -> None:
    assert [problem.what for problem in banned_names("jobs/cli/demo_told.py")] == [
        '"told" is a banned word in the name of a module'
    ]
    assert banned_names("jobs/ingest/standby.py") == []


def test_no_module_of_tests_has_a_banned_word_in_its_name() -> None:
    assert [
        name for file in files("tests") if file.suffix == ".py" for name in banned_names(f"{file.relative_to(ROOT)}")
    ] == []


@pytest.mark.parametrize("word", ["Return", "Compress", "Embed", "Re-read"])
def test_an_imperative_first_word_is_accepted(word: str) -> None:
    assert is_imperative(f"{word} it.")


@pytest.mark.parametrize("word", ["The", "Whether", "Returns", "Called", "Spark's", "`x`", "JSON", "2"])
def test_another_first_word_is_found(word: str) -> None:
    (problem,) = first_words("m.py", f'def f():\n    """{word} it."""\n')
    assert str(problem).startswith(f'm.py:2: f: "{word}" is no imperative verb')


def test_properties_and_dunder_methods_may_start_with_a_noun() -> None:
    code = 'class A:\n @property\n def a(self):\n  """The a."""\n @cached_property\n def b(self):\n  """The b."""\n def __eq__(self):\n  """Whether."""\n'
    assert first_words("m.py", code) == []


def test_a_module_docstring_that_starts_with_the_file_name_is_found() -> None:
    assert len(first_words("a/fence.py", '"""fence.py: pure."""\n')) == 1
    assert first_words("a/fence.py", '"""Fence drivers."""\n') == []


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ROOMS:
        for place in problems_of(chosen.rstrip("/")):
            print(place)
