"""One statement that only reads: SELECT (with FROM, WITH, VALUES), DESCRIBE, SHOW, SUMMARIZE, or EXPLAIN of one.

DuckDB's own parser decides, not the text: to it, all but EXPLAIN are of the type SELECT.
"""

from __future__ import annotations

from frazil.errors import InvalidInput
from frazil.local.duckdb_query import installed

_DO = "Write one SELECT, WITH, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN"


def check_statement(text: str) -> None:
    """Raise `InvalidInput` if the text is not one statement that only reads."""
    duckdb = installed()
    try:
        text.encode()
        found = duckdb.extract_statements(text)
    except UnicodeEncodeError:
        raise InvalidInput("the text is not UTF-8", where="SQL", do="Write it as UTF-8") from None
    except duckdb.Error as error:
        raise sql_error(error) from None
    if len(found) != 1:
        what = "there is no statement" if not found else "there are several statements, or a PIVOT without IN"
        raise InvalidInput(what, where="SQL", do=_DO)
    kind: str = found[0].type.name
    if kind == "EXPLAIN":
        kind = _explained(text)
    if kind != "SELECT":
        raise InvalidInput(f"a statement {kind} does more than read", where="SQL", do=_DO)


def sql_error(error: Exception) -> InvalidInput:
    """Return DuckDB's error about a statement, without its drawing of the place."""
    lines = [line.strip() for line in str(error).split("\nLINE ")[0].splitlines() if line.strip()]
    return InvalidInput(" ".join(lines)[:500].rstrip(".!"), where="SQL")


def _explained(text: str) -> str:
    """Return the type of the statement that is explained: EXPLAIN ANALYZE would run it."""
    duckdb = installed()
    for position, _ in duckdb.tokenize(text):
        try:
            found = duckdb.extract_statements(text.encode()[position:].decode())
        except (duckdb.Error, UnicodeDecodeError):
            continue
        if len(found) == 1 and found[0].type.name != "EXPLAIN":
            return str(found[0].type.name)
    return "EXPLAIN"
