"""The life of the topic of a database's table, and of the upsert table that it fills."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.support.debezium_events import ORDERS, PLACEHOLDER, Source, column, optional
from tests.support.life import Life
from tests.support.shop import Shop

COLOURS = ["red", "green", "blue"]
KEYS, WORDS = st.integers(0, 5), st.sampled_from(COLOURS)
OR_NONE = st.one_of(WORDS, st.none())


class CapturedLife(Life):
    """The topic of a database's table with Debezium's events, truncates and values that an event leaves out among them."""

    def __init__(self, shop: Shop) -> None:
        super().__init__(shop)
        self.source, self.columns, self.without_row = Source(shop), list(ORDERS), 0
        shop.drain()  # makes the table

    def produce_one(self, number: int) -> None:
        if number < 8:
            self.save(number % 6, f"of a twin, {number}", None)
        else:
            self.source.delete(number % 6)

    @rule(key=KEYS, word=WORDS, note_of=st.one_of(OR_NONE, st.just(PLACEHOLDER)))
    def save(self, key: int, word: str, note_of: str | None) -> None:
        known = key in self.source.rows
        left_out = note_of == PLACEHOLDER and not known
        self.source.write("u" if known else "c", key, customer=word, note=None if left_out else note_of)

    @rule(key=KEYS, parts=st.sampled_from([(True, True), (True, False), (False, True)]))
    def delete(self, key: int, parts: tuple[bool, bool]) -> None:
        event, tombstone = parts
        self.source.delete(key, event=event, tombstone=tombstone)

    @rule(key=KEYS, to=KEYS)
    def change_a_key(self, key: int, to: int) -> None:
        row = dict(self.source.rows.get(key) or {"customer": "new", "note": None})
        self.source.delete(key)
        self.source.write("c", to, customer=row["customer"], note=row["note"])

    @rule()
    def truncate(self) -> None:
        self.source.produce(None, self.source.event("t", None))
        self.source.rows.clear()

    @rule(key=KEYS)
    def send_a_message(self, key: int) -> None:
        self.source.produce(key, self.source.event("m", None))

    @rule(key=KEYS)
    def leave_out_what_no_row_has(self, key: int) -> None:
        if key not in self.source.rows:
            row = {each["name"]: None for each in self.columns} | {"id": key, "note": PLACEHOLDER}
            self.source.produce(key, self.source.event("u", row))
            self.without_row += 1

    @precondition(lambda self: len(self.columns) < 6)
    @rule()
    def add_a_column(self) -> None:
        self.columns.append(column(f"more_{len(self.columns)}", optional("int")))
        self.source.evolve(self.columns)

    def check_rows(self) -> None:
        found = sorted((row["id"], row["customer"], row["note"]) for row in self.shop.landed())
        assert found == self.wanted()

    def check_dead_letters(self) -> None:
        """Assert it. A change that lacks values is superseded if its batch has a later one of its key, or a truncate."""
        assert {row["reason"] for row in self.shop.dead()} <= {"value_unavailable"}
        assert len(self.shop.dead()) <= self.without_row

    def wanted(self) -> list[Any]:
        return sorted((key, row["customer"], row["note"]) for key, row in self.source.rows.items())

    def teardown(self) -> None:
        super().teardown()
        self.check_engines("id, customer, note", self.wanted())
