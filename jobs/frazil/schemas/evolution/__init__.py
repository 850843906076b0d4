"""Versions of a schema merged to one row type, and the changes that a table needs for it."""
