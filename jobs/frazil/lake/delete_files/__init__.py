"""Delete files: read, written and merged, by the positions of rows in data files."""
