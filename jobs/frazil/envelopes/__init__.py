"""Envelopes of change data: what a record says of a row. `envelope` has the interface."""
