"""The keys of records, and the keys of rows."""
