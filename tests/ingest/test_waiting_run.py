"""A run whose topic has no schema yet starts once more when it comes."""

from __future__ import annotations

import pytest

from frazil.ingest.reporting.events import Event
from tests.ingest.test_loop import Loop


def test_a_run_that_waits_for_a_schema_starts_when_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the looks at the schema its state stays `waiting`."""
    loop = Loop(monkeypatch, records=170)
    evolution = loop.ingestion._evolution
    for name, value in (
        ("is_known", False),
        ("refresh", lambda: None),
        ("waiting", lambda _: {"message": "no schema"}),
    ):
        monkeypatch.setattr(evolution, name, value, raising=False)
    for _ in range(5):
        assert not loop.ingestion.poll()
    assert [event["event"] for event in loop.events] == [Event.PIPELINE_STARTED, Event.IDLE]
    monkeypatch.setattr(evolution, "is_known", True)
    loop.ingestion.poll()
    assert [event["event"] for event in loop.events][2:4] == [Event.PIPELINE_STARTED, Event.BATCH_COMMITTED]
