"""Proof that what was read from a topic is in its table, in its dead letters, or accounted for."""
