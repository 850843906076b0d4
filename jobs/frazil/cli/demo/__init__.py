"""The demonstration: topics, records good and bad, and what is printed."""
