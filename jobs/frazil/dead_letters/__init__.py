"""Rejected records: kept with their bytes, listed, shown."""
