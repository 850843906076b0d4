"""SQL expressions over a row, as people write them: read by sqlglot, and written again for Spark with its own names.

Spark gets no text of a declaration, only what is rendered from the tree; what `EXAMPLES` have is all that a tree may hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from frazil.declaration.checks.constraints import LONG_MAX, shown
from frazil.declaration.checks.null_values import is_null, may_be, paths_of, reads_of
from frazil.declaration.checks.problems import InvalidDeclaration, Problem

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

EXAMPLES = (
    "s = 'a' and n <> 1 or not n < 2 and n <= 3 or n > 4 or n >= 5 or n <=> 6 or (s is null) or s is not true",
    "n in (1, 2) or n not in (3) or n between 1 and 2 or s like 'a%' or s ilike 'a%' or s rlike r'^a' and false",
    r"""s = 'a\'b\\c\nd%\%_' or s like 'a\\%\_%' or s = r'\d' or s = "it's" or s = '-- /* no comment */'""",
    "n + 1 - 2 * 3 / 4 % 5 > -n or n div 2 = 1.5 or s || 'x' = 'y'",
    "case when n = 1 then s when n = 2 then null else 'c' end = case s when 'x' then 'y' end or if(n = 1, true, false)",
    "cast(n as string) = 'a' or try_cast(s as int) = 1 or cast(s as bigint) = 1 or cast(s as float) = 1 or cast(s as double) = 1",
    "cast(n as decimal(10, 2)) = 1 or cast(s as boolean) or cast(s as date) = date '2026-01-31' or cast(s as binary) = x'00'",
    "cast(s as timestamp) = timestamp '2026-01-31 00:00:00' or cast(s as timestamp_ntz) = d + interval 1 day - interval '2' hours",
    "coalesce(s, s) = ifnull(s, s) or nvl(s, s) = nullif(s, s) or isnull(s) or isnotnull(s)",
    "lower(s) = upper(s) or trim(s) = ltrim(s) or rtrim(s) = left(s, 2) or right(s, 2) = substring(s, 1, 2) or length(s) = 1",
    "concat(s, s) = concat_ws('-', s, s) or replace(s, 'a', 'b') = lpad(s, 2, '0') or rpad(s, 2, '0') = substr(s, 2)",
    "regexp_replace(s, 'a', 'b') = regexp_extract(s, '(a)', 1) or split(s, ',')[0] = s or regexp_like(s, 'a')",
    "startswith(s, 'a') or endswith(s, 'a') or contains(s, 'a') or instr(s, 'a') = 1 or locate('a', s) = 1",
    "abs(n) = round(n, 2) or round(n) = floor(n) or ceil(n) = sign(n) or greatest(n, 1) = least(n, 2) or mod(n, 2) = 1",
    "to_date(s) = to_date(s, 'yyyy') or to_timestamp(s) = to_timestamp(s, 'yyyy') or date_trunc('month', t) = trunc(d, 'year')",
    "year(t) = month(t) or day(t) = hour(t) or minute(t) = second(t) or quarter(t) = dayofweek(t) or datediff(d, d) = 1",
    """to_date(s, 'd.M.y') = to_date(s, 'yyyy-MM-dd') or date_format(t, "'y' E") = s or trunc(d, s) = date_trunc(s, t)""",
    "date_add(d, 1) = date_sub(d, 1) or add_months(d, 1) = last_day(d) or date_format(t, 'yyyy') = from_unixtime(n)",
    "timestamp_seconds(n) = timestamp_millis(n) or timestamp_micros(n) = t or unix_timestamp(t) = unix_millis(t)",
    "l[0] = element_at(l, 1) or m['k'] = element_at(m, 'k') or size(l) = 1 or array_contains(l, 1) or r.a.b = r.c[0].d",
    "map_keys(m)[0] = map_values(m)[0] or array_join(l, ',') = get_json_object(s, '$.a[0]') or array_max(l) = array_min(l)",
    "get_json_object(s, 'a') = s",
    "sha2(s, 256) = md5(s) or hex(s) = base64(b) or unbase64(s) = b or crc32(s) = 1",
)
"""All that an expression may hold: operators, types and functions, each of which has one answer for a row (UTC). `s` is text, `n` a
number, `d` a date, `t` a timestamp, `b` bytes, `l` a list, `m` a map and `r` a struct. A test runs them in Spark as they are."""
MOST_PARTS = 16
_PATTERNS = ("regexp_like", "regexp_replace", "regexp_extract", "split")
_LONGEST = _WIDEST = 10_000
_UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_DO = "The page shape-rows lists what an expression may hold"


@dataclass(frozen=True, slots=True)
class RowExpression:
    """An expression that was read. It is equal to another one of the same text."""

    text: str

    @property
    def path(self) -> tuple[str, ...]:
        """The column that it is, and the fields in it; empty if it is more than that."""
        tree = _read(self.text)
        return tuple(map(str.lower, next(_paths(tree)))) if type(tree).__name__ == "Column" else ()

    @property
    def may_be_now(self) -> bool:
        """True if it has a text of which Spark makes the present time where it is compared with a time, such as `today`."""
        from sqlglot.expressions import Literal, RawString

        texts = (node.name for node in _read(self.text).find_all(Literal, RawString))
        return any(re.match(r"\s*(epoch|now|today|tomorrow|yesterday)", text, re.IGNORECASE) for text in texts)

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The columns that it reads, each with the fields in it, those inside lists and maps too, as `reads_of` has them."""
        return tuple(dict.fromkeys(reads_of(_read(self.text))))

    @property
    def places(self) -> tuple[tuple[str, ...], ...]:
        """The columns and fields that any part of it is, as `paths_of` has them: `c.a`, and `c`, too."""
        found = (path for node in _read(self.text).walk() for path in sorted(paths_of(node)))
        return tuple(dict.fromkeys(found))

    def may_be_true(self, nulls: Collection[tuple[str, ...]]) -> bool:
        """Return whether it may be true where these `places` are null, by the nulls alone: constants may be anything."""
        return True in may_be(_read(self.text), nulls)

    def without(self, nulls: Collection[tuple[str, ...]], row: str) -> tuple[str, dict[str, str]]:
        """Return it as Spark's SQL with fields of `row` in place of what these `places` are, and the SQL that each one replaces."""
        from sqlglot import expressions as e

        names: dict[str, str] = {}

        def replaced(node: Expr) -> Expr:
            return e.column(name_of(node), quoted=True) if is_null(node, nulls) else node

        def name_of(node: Expr) -> str:
            return names.setdefault(_rendered(node, row), f"_frazil_null{len(names)}")

        sql = _rendered(_read(self.text).transform(replaced), row)
        return sql, {name: replaces for replaces, name in names.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, without the fields in them, in their order."""
        return tuple(dict.fromkeys(path[0].lower() for path in _paths(_read(self.text))))

    def sql(self, row: str) -> str:
        """Return it as Spark's SQL over the fields of the column `row`."""
        return _rendered(_read(self.text), row)

    def parts(self, row: str) -> list[tuple[str, str]]:
        """Return the first `MOST_PARTS` calls, casts and divisions in it: as they are written, and as Spark's SQL."""
        from sqlglot import expressions as e

        may_fail = (e.Anonymous, e.Cast, e.Div, e.IntDiv, e.Mod)
        found = (node for node in _read(self.text).find_all(*may_fail, bfs=False) if node.find(e.Column))
        texts = {node.sql(_dialect(), comments=False): node for node in found}
        return [(text, _rendered(node, row)) for text, node in islice(texts.items(), MOST_PARTS)]


def row_expression(text: str, *, may_be_constant: bool = False) -> RowExpression:
    """Return the expression of a text. Raises `InvalidDeclaration` with its one problem."""
    try:
        tree = _read(text)
    except RecursionError:
        raise refused("it is nested too deeply", "Write a simpler one") from None
    if not may_be_constant and not list(_paths(tree)):
        raise refused(f"{shown(text)} reads no column", "Name a column of the row")
    return RowExpression(text)


def refused(what: str, do: str = _DO) -> InvalidDeclaration:
    """Return the refusal of an expression."""
    return InvalidDeclaration([Problem("", what, do)])


@lru_cache(maxsize=256)
def _read(text: str) -> Expr:
    tree: Expr = _parsed(text)
    kinds, names, types = _allowed()
    for node in tree.walk():
        if (name := _name(node)) is not None and name not in names:
            raise refused(f"the function {name} is not allowed")
        if type(node) not in kinds or (type(node).__name__ == "DataType" and node.this not in types):
            raise refused(f"{shown(node.sql(_dialect(), comments=False))} is not allowed")
        if what := _misuse(node):
            raise refused(f"{shown(node.sql(_dialect(), comments=False))} {what}")
    if "${" in _rendered(tree, "row"):
        raise refused("it holds ${, which Spark replaces by a variable", "Split it, such as concat(name, '$', '{x}')")
    return tree


def _misuse(node: Expr) -> str:
    """Return what is wrong with a node of an allowed kind: its parts are written for Spark as they are. Empty if nothing is."""
    from sqlglot import expressions as e

    match node:
        case e.Var() if not isinstance(node.parent, e.Interval) or node.name.upper().removesuffix("S") not in _UNITS:
            return f"is not a unit of an interval: write {', '.join(_UNITS).lower()}"
        case e.Interval() if not (isinstance(node.this, e.Literal) and re.fullmatch(r"\d{1,9}", node.name)):
            return "needs a whole number, such as interval 2 day"
        case e.DataTypeParam() if not (isinstance(node.this, e.Literal) and re.fullmatch(r"[12]?\d|3[0-8]", node.name)):
            return "is not the size of a type: a decimal has at most 38 digits"
        case e.DataType() if any(not isinstance(one, e.DataTypeParam) for one in node.iter_expressions()):
            return "is a type with other parts than a size"
        case e.Literal() if not node.is_string and len(re.sub(r"\D", "", node.name)) > 38:
            return "is too long a number"
        case e.Dot() if not isinstance(node.expression, e.Identifier) or isinstance(node.this, e.Identifier):
            return "is not a field of a struct"
        case e.In() if not node.expressions:
            return "lists nothing"
        case e.Cast() if isinstance(node.this, e.Literal):
            return _misuse_of_literal(node)
        case e.Anonymous() if node.name.lower() in ("lpad", "rpad") and not _is_width(*node.expressions[1:2]):
            return f"pads to a width that is not a number up to {_WIDEST:,}"
        case e.RegexpLike() if what := _misuse_of_pattern(node.expression):
            return what
        case e.Anonymous() if node.name.lower() in _PATTERNS and (what := _misuse_of_pattern(*node.expressions[1:2])):
            return what
        case e.Anonymous() | e.Case() | e.DPipe() | e.Cast() if node.find(e.Column) is None:
            return "reads no column: write its value"
    return ""


def _is_width(width: Any = None) -> bool:
    return (
        type(width).__name__ == "Literal"
        and re.fullmatch(r"\d{1,5}", width.name) is not None
        and int(width.name) <= _WIDEST
    )


def _misuse_of_pattern(pattern: Any = None) -> str:
    """Return what is wrong with a regular expression: where a group with choices repeats, a long text overflows Java's stack."""
    if type(pattern).__name__ not in ("Literal", "RawString"):
        return "has no pattern that is a text"
    if _repeats_choices(pattern.name):
        return "repeats a group with choices, which fails for long texts: write a class such as [ab]*"
    return ""


def _repeats_choices(pattern: str) -> bool:
    """Return whether a group repeats in which there are choices at any depth: Java matches each repetition in a call of its own."""
    text = re.sub(r"\\Q.*?(\\E|$)", "q", pattern, flags=re.DOTALL)
    text = re.sub(r"\\.", "e", text, flags=re.DOTALL)
    while text != (less := re.sub(r"\[\^?\]?[^\[\]]*\]", "c", text)):  # classes, and those in them
        text = less
    text = re.sub(r"\(\?(?:<?[=!]|[:>]|<\w+>|[a-zA-Z-]*:)", "(", text)
    open_groups = [False]
    for at, letter in enumerate(text):
        if letter == "(":
            open_groups.append(False)
        elif letter == ")" and len(open_groups) > 1:
            has_choices, follows = open_groups.pop(), text[at + 1 : at + 2]
            if has_choices and follows in ("*", "+", "{"):
                return True
            open_groups[-1] |= has_choices
        elif letter in "|*+?{":
            open_groups[-1] = True
    return False


def _misuse_of_literal(cast: Any) -> str:
    """Return what is wrong with a literal of a type. Of a text like `now` Spark makes the time at which it runs."""
    text, of = cast.this.name, cast.to.this.value
    if not cast.this.is_string:
        return "" if re.fullmatch(r"\d+(\.\d+)?", text) and float(text) < LONG_MAX else "is too long a number"
    if of == "DATE" or of.startswith("TIMESTAMP"):
        try:
            (date if of == "DATE" else datetime).fromisoformat(text)
            is_date = re.match(r"\d{4}-\d\d-\d\d", text) is not None  # Python reads weeks, too
        except ValueError:
            is_date = False
        if not is_date:
            return "is not a date: write it as '2026-01-31', and a timestamp as '2026-01-31 10:20:30'"
    return ""


def tokens_of(text: str) -> list[Any]:
    """Return the tokens of a text. Raises `InvalidDeclaration` with its one problem."""
    from sqlglot import tokenize

    if len(text) > _LONGEST:
        raise refused(f"it has more than {_LONGEST:,} characters", "Write a shorter one")
    return _attempt(tokenize, text, "spark")


def _attempt(of: Callable[..., list[Any]], text: str, dialect: Any, *, before: str = "", after: str = "") -> list[Any]:
    from sqlglot.errors import SqlglotError

    try:
        return of(before + text + after, read=dialect)
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise refused(f"{shown(text)} is not an SQL expression: {_first_line(error)}") from None


def _parsed(text: str) -> Any:
    from sqlglot import parse
    from sqlglot.expressions import Interval, Paren

    tokens, trees = (
        tokens_of(text),
        _attempt(parse, text, _dialect(), before="(", after="\n)"),
    )  # what begins as a statement is a column
    kinds = [token.token_type.name for token in tokens]
    if not {"CHAR", "NCHAR", "VARCHAR", "NVARCHAR"}.isdisjoint(kinds):
        raise refused("a text with a length is not allowed", "Cast to string")
    if any(one == other == "STRING" for one, other in pairwise(kinds)):
        raise refused("two texts follow each other", r"Write \' for a quote in a text, and || to join two")
    if len(trees) != 1 or type(trees[0]) is not Paren or trees[0].this is None:
        raise refused(f"{shown(text)} is not one expression")
    if kinds.count("INTERVAL") != len(list(trees[0].find_all(Interval))):
        raise refused("an interval has several units", "Write one interval for each unit")
    return trees[0].this


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


@lru_cache(maxsize=1)
def _dialect() -> Any:
    """Return Spark's dialect that takes each function as it is written: sqlglot knows other meanings of their arguments."""
    from sqlglot.dialects.spark import Spark  # 0.4 s, and most declarations have no expression

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in Spark.Parser.FUNCTION_PARSERS.items() if name in ("CAST", "TRY_CAST")
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}

    return type("Rows", (Spark,), {"Parser": Parser})


@lru_cache(maxsize=1)
def _allowed() -> tuple[frozenset[type], frozenset[str], frozenset[Any]]:
    """Return the kinds of nodes, the names of functions without a kind of their own, and the types, of all examples."""
    nodes = [node for text in EXAMPLES for node in _parsed(text).walk()]
    names = (_name(node) for node in nodes)
    types = (node.this for node in nodes if type(node).__name__ == "DataType")
    return frozenset(map(type, nodes)), frozenset(name for name in names if name is not None), frozenset(types)


def _name(node: Expr) -> str | None:
    """Return the name of a function."""
    return str(node.this).lower() if type(node).__name__ == "Anonymous" else None


def _paths(tree: Expr) -> Iterator[list[str]]:
    from sqlglot.expressions import Column

    yield from ([part.name for part in node.parts] for node in tree.find_all(Column, bfs=False))


def _rendered(tree: Expr, row: str) -> str:
    from sqlglot import expressions as e

    def placed(node: Expr) -> Expr:
        if not isinstance(node, e.Column):
            return node
        parts = [e.to_identifier(row, quoted=True), *(e.to_identifier(part.name, quoted=True) for part in node.parts)]
        return e.Dot.build(parts)

    return str(tree.copy().transform(placed).sql(_dialect(), comments=False, identify=True))
