"""Deletes of rows by their position in a data file: from the keys of a batch to delete files in no snapshot."""
