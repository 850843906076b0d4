"""Operator decisions: what may be decided after a stop, and how a decision is applied to the tables."""
