"""The declared shape of rows: conditions, columns, times of events."""
