"""The index of keys: where the row of each key is, on the driver's disk, for one snapshot of a table."""
