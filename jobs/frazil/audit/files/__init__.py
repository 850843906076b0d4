"""Data files of a table: the records that they hold, counted."""
