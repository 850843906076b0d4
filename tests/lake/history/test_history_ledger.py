"""The account of a history."""

from __future__ import annotations

from frazil.lake.history.history_ledger import HistoryAccount

BEGIN = HistoryAccount(rows=2, hash=7, since=3, began=2)


def test_an_account_survives_its_text() -> None:
    account = BEGIN.after(inserted=3, updated=1, deleted=2, hash_difference=-9)
    assert HistoryAccount.parse(str(account)) == account


def test_rows_and_hash_follow_the_changes_modulo_2_to_the_64() -> None:
    account = BEGIN.after(inserted=3, updated=1, deleted=2, hash_difference=-9)
    assert (account.rows, account.hash) == (3, 2**64 - 2)
    assert (account.since, account.began) == (3, 2)
    assert account.after(inserted=0, updated=4, deleted=0, hash_difference=9).hash == 7


def test_rows_that_went_beside_one_of_their_key_are_counted() -> None:
    account = BEGIN.after(inserted=0, updated=1, deleted=0, doubled=1, hash_difference=-4)
    assert (account.rows, account.hash, account.doubled) == (1, 3, 1)
    assert HistoryAccount.parse(str(account)) == account
    assert "doubled" not in str(BEGIN)
