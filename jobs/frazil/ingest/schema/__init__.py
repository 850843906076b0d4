"""The schemas of a topic: which of them the table follows, and which records have none."""
