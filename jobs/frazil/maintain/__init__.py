"""Upkeep of tables: files change, rows and offsets never."""
