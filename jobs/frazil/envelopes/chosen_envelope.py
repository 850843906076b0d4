"""The envelope that a declaration names."""

from __future__ import annotations

from frazil.declaration.envelopes import Debezium
from frazil.declaration.envelopes import Envelope as Declared
from frazil.envelopes.debezium import DebeziumEvents
from frazil.envelopes.envelope import NO_ENVELOPE, Envelope


def envelope(declared: Declared | None) -> Envelope:
    """Return the envelope of a declaration."""
    match declared:
        case None:
            return NO_ENVELOPE
        case Debezium():
            return DebeziumEvents(declared)
