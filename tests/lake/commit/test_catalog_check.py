"""The start probe takes a conflict for a proof, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from frazil.errors import CatalogUnavailable, FenceUnproven
from frazil.lake.commit import catalog_check


class Refused(Py4JJavaError):
    """A Java exception without a JVM."""

    def __init__(self) -> None:
        Exception.__init__(self)


class Catalog:
    """A catalog whose second commit ends in an exception of that name, or succeeds."""

    def __init__(self, second: str) -> None:
        self.name, self._second, self._transactions, self.dropped = "lake", second, 0, False

    def create_namespace(self, namespace: str) -> None: ...

    def create(self, *arguments: Any) -> None: ...

    def load(self, table: str) -> Any:
        return SimpleNamespace(newTransaction=self._transaction)

    def _transaction(self) -> Any:
        self._transactions += 1
        is_second = self._transactions % 2 == 0

        def commit() -> None:
            if is_second and self._second:
                raise Refused

        return SimpleNamespace(commitTransaction=commit)

    def drop(self, table: str, *, purge: bool) -> None:
        self.dropped = True


def probed(second: str, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setattr(catalog_check, "fill", lambda *_: 1)
    monkeypatch.setattr(catalog_check, "empty_commit", lambda *_, **__: None)
    monkeypatch.setattr(catalog_check, "thrown", lambda error: second)
    monkeypatch.setattr(catalog_check, "message", lambda error: "words")
    catalog = Catalog(second)
    try:
        catalog_check.check_catalog(catalog, "shop", unique_id="t")  # type: ignore[arg-type]
    finally:
        assert catalog.dropped
    return catalog


def test_a_conflict_is_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    probed("CommitFailedException", monkeypatch)


def test_two_commits_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FenceUnproven):
        probed("", monkeypatch)


@pytest.mark.parametrize("second", sorted(catalog_check.OUTAGES))
def test_an_outage_proves_nothing(second: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CatalogUnavailable, match=second):
        probed(second, monkeypatch)
