"""The bytes that name a record's schema."""
