"""Schemas that a declaration holds: their row types, their problems, and what a change of them does."""
