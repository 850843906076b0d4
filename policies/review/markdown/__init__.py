"""A review for people, as Markdown."""
