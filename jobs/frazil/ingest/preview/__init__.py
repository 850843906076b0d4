"""A preview of records as rows; nothing is written."""
