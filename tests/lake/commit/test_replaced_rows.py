"""The verdict on a commit that failed: whether it is retried, or refused with its cause."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from frazil.errors import CommitRefused
from frazil.lake.commit.replaced_rows import ReplacedRows
from frazil.lake.commit.table_state import TableState

MANIFEST = "java.lang.IllegalStateException: Cannot encode decimal with precision 15 as max precision 14"


def throwable(text: str, *causes: str) -> Any:
    """Return a Java exception, as py4j gives it."""
    name = text.partition(":")[0].rpartition(".")[2]
    cause = throwable(*causes) if causes else None
    return SimpleNamespace(
        toString=lambda: text, getCause=lambda: cause, getClass=lambda: SimpleNamespace(getSimpleName=lambda: name)
    )


class Thrown(Py4JJavaError):
    def __init__(self, *texts: str) -> None:
        self.java_exception = throwable(*texts)


class Captured(IllegalArgumentException):
    """What PySpark makes of some of Java's exceptions."""

    def __init__(self, *texts: str) -> None:
        self._origin = throwable(*texts)


class Changes:
    """The rows that a batch replaces."""

    def __init__(self) -> None:
        self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1


def base(head: int | None) -> TableState:
    return cast(TableState, SimpleNamespace(head=head))


def search(changes: Changes | None = None) -> ReplacedRows:
    return ReplacedRows(cast(Any, changes), "shop.orders")


@pytest.mark.parametrize("changes", [None, Changes()], ids=["append", "upsert"])
def test_any_failure_but_an_outage_is_a_refusal_when_it_comes_twice_on_one_head(changes: Changes | None) -> None:
    """Files have other names at each try, so the texts differ."""
    tried, name = search(changes), "x" * 500
    one, two = (
        Thrown(
            "org.apache.iceberg.exceptions.RuntimeIOException: no",
            f"java.io.IOException: /{n}/{name} (File name too long)",
        )
        for n in (1, 2)
    )
    assert "File name too long" in tried.after(one, base(7))
    with pytest.raises(CommitRefused) as refused:
        tried.after(two, base(7))
    assert f"java.io.IOException: /2/{name} (File name too long)" in str(refused.value)
    assert "catalog" not in str(refused.value)


def test_a_failure_on_another_head_is_tried_again() -> None:
    tried = search(changes := Changes())
    for head in (None, 1, 2, 3):
        assert tried.after(Thrown(MANIFEST), base(head)) == MANIFEST
    assert changes.forgotten == 4


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.iceberg.exceptions.CommitFailedException: Requirement failed: branch main has changed",
        "org.apache.iceberg.exceptions.ServiceFailureException: Server error: 503",
        "software.amazon.awssdk.services.glue.model.ThrottlingException: Rate exceeded (Service: Glue, Status Code: 400)",
        "java.io.IOException: No space left on device",
    ],
)
def test_outages_and_conflicts_are_never_refusals(text: str) -> None:
    tried = search()
    for _ in range(5):
        assert tried.after(Thrown("java.lang.RuntimeException: no", text), base(7)) == text


@pytest.mark.parametrize(
    "error",
    [
        Thrown("org.apache.iceberg.exceptions.ValidationException: frazil_p is a branch not a tag"),
        Captured("java.lang.IllegalArgumentException: frazil_p is a branch not a tag"),
    ],
)
def test_what_iceberg_refuses_of_an_append_is_refused_at_once(error: Py4JJavaError) -> None:
    with pytest.raises(CommitRefused, match="frazil_p is a branch not a tag"):
        search().after(error, base(7))
    search(Changes()).after(error, base(7))  # another commit may have come after the search for rows
