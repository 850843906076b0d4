"""The envelope that a declaration names."""

from __future__ import annotations

from frazil.declaration.envelopes import Debezium
from frazil.declaration.envelopes import Envelope as Declared
from frazil.envelopes.debezium import DebeziumEvents
from frazil.envelopes.envelope import Envelope


def envelope(declared: Declared | None) -> Envelope | None:
    """Return the envelope of a declaration; None if it has none."""
    match declared:
        case None:
            return None
        case Debezium():
            return DebeziumEvents(declared)
