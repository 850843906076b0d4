"""One decision for a table and its dead-letter table: decide, finish, and read its state."""
